"""A streamed answer of llama-server, read in the background."""

from __future__ import annotations

import http.client
import json
import threading


class Stream:
    """A chat completion of a fixed number of tokens, streamed from one address.

    Attributes:
        chunks: pieces of text received so far; a token need not be a whole character.
        tokens: how many were made, by the server's own count at the end.
        finished: the stream came to its proper end.
        error: what broke it off, if anything did.
    """

    def __init__(self, address: str, *, tokens: int) -> None:
        self.chunks, self.tokens, self.finished, self.error = 0, 0, False, ""
        self._connection = http.client.HTTPConnection(address, 8080, timeout=300)
        body = {
            "messages": [{"role": "user", "content": "tell me everything"}],
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
        }
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            response = self._connection.getresponse()
            for line in response:
                text = line.decode().strip()
                if text == "data: [DONE]":
                    self.finished = True
                elif text.startswith("data: "):
                    piece = json.loads(text[6:])
                    self.chunks += 1
                    self.tokens = (piece.get("usage") or {}).get("completion_tokens", self.tokens)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = repr(error)
        finally:
            self._connection.close()

    def wait(self, timeout_seconds: float) -> None:
        """Wait until the stream has ended, well or not."""
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            raise AssertionError(f"still streaming after {timeout_seconds} s: {self.chunks} pieces")
