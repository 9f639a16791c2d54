"""A TCP proxy whose established connections can be made to die silently."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Proxy:
    """Forwards connections to one address, in a thread of its own.

    Attributes:
        port: where it listens on 127.0.0.1.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._frozen_before = 0
        self._connections = 0
        self._writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait()

    def freeze(self) -> None:
        """From now on nothing passes on the connections that there are; they stay open. New ones work."""
        self._frozen_before = self._connections

    def close(self) -> None:
        """Stop, and drop every connection."""
        self._loop.call_soon_threadsafe(self._server.close)
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        self._loop.close()

    async def _end(self) -> None:
        # Who reads from a connection that is gone ends by itself; a cancelled task would complain.
        for writer in self._writers:
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        upstream_reader, upstream_writer = await asyncio.open_connection(*self._target)
        self._writers += [writer, upstream_writer]
        await asyncio.gather(
            self._forward(reader, upstream_writer, number), self._forward(upstream_reader, writer, number)
        )

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if number > self._frozen_before:
                    writer.write(data)
                    await writer.drain()
            if number > self._frozen_before:
                writer.close()
