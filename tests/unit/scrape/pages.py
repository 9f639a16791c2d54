"""A server's metrics page, served for real on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """\
# HELP llamapool_checkpoint_bytes Size of a checkpoint.
# TYPE llamapool_checkpoint_bytes gauge
llamapool_checkpoint_bytes 156893184
# TYPE llamapool_limits_generation gauge
llamapool_limits_generation 7
# TYPE llamapool_pool_cap_bytes gauge
llamapool_pool_cap_bytes 629145600
# TYPE llamapool_pool_hits_total counter
llamapool_pool_hits_total 3
# TYPE llamapool_memory_base_bytes gauge
llamapool_memory_base_bytes NaN
# TYPE llamapool_build_info gauge
llamapool_build_info{version="1"} 1
# TYPE llamapool_time_to_first_token_seconds histogram
llamapool_time_to_first_token_seconds_bucket{le="0.1"} 1
llamapool_time_to_first_token_seconds_bucket{le="1"} 4
llamapool_time_to_first_token_seconds_bucket{le="+Inf"} 5
llamapool_time_to_first_token_seconds_sum 3.5
llamapool_time_to_first_token_seconds_count 5
"""


@contextmanager
def serving(page: str, *, status: int = 200, delay: threading.Event | None = None) -> Iterator[int]:
    """Serve one page at every path, after `delay` is set if given; yields the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if delay is not None:
                delay.wait()
            body = page.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            if delay is not None:
                delay.set()
            server.shutdown()
            thread.join()
