"""A streamed answer of llama-server, read in the background."""

from __future__ import annotations

import http.client
import json
import threading


class Stream:
    """A chat completion of a fixed number of tokens, streamed from one address.

    Attributes:
        tokens: how many were received so far.
        finished: the stream came to its proper end.
        error: what broke it off, if anything did.
    """

    def __init__(self, address: str, *, tokens: int) -> None:
        self.tokens, self.finished, self.error = 0, False, ""
        self._wanted = tokens
        self._connection = http.client.HTTPConnection(address, 8080, timeout=300)
        body = {
            "messages": [{"role": "user", "content": "tell me everything"}],
            "max_tokens": tokens,
            "ignore_eos": True,
            "stream": True,
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
                    self.tokens += bool(json.loads(text[6:])["choices"][0]["delta"].get("content"))
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.error = repr(error)

    def wait(self, timeout_seconds: float) -> None:
        """Wait until the stream has ended, well or not."""
        self._thread.join(timeout_seconds)
        if self._thread.is_alive():
            raise AssertionError(f"still streaming after {timeout_seconds} s: {self.tokens} tokens")
