"""A proxy between workers and an S3 server, which cuts, delays, repeats and fakes answers."""

import http.client
import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# What happens to a request, and how often of a thousand.
FAULTS = {
    "cut": 20,  # the connection ends before the request reaches the server
    "lost": 20,  # the server does what is requested, and its answer is lost
    "truncate": 15,  # the body of the answer ends early
    "delay": 30,
    "repeat": 20,  # the server gets the request again, later
    "unavailable": 20,  # an answer with the status 503
}
_LATE = 0.3  # seconds, at most


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def do(self) -> None:
        self.server.handle(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do  # noqa: N815 - names of the library

    def log_message(self, *_: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    """A server on a free port of this machine, whose `handle` answers a request with a body."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class FaultyProxy(Listener):
    """Forwards requests; `faults` may be changed at any time."""

    def __init__(self, endpoint: str, seed: int = 0) -> None:
        self.target = urlsplit(endpoint).netloc
        self.faults: dict[str, int] = {}
        self.seen = Counter[str]()
        self.requests: list[tuple[str, str]] = []
        self.dropped_headers = {"connection"}
        self._random, self._lock = random.Random(seed), threading.Lock()
        self._repeats: list[threading.Timer] = []
        super().__init__()

    def wait_for_repeats(self) -> None:
        """Wait until the server has got the requests that it gets again."""
        for repeat in self._repeats:
            repeat.join()

    def _fault(self) -> str:
        with self._lock:
            at = self._random.randrange(1000)
            for fault, share in self.faults.items():
                at -= share
                if at < 0:
                    self.seen[fault] += 1
                    return fault
            self.seen["none"] += 1
            return ""

    def forward(self, method: str, path: str, headers: dict, body: bytes) -> tuple[int, list, bytes]:
        connection = http.client.HTTPConnection(self.target, timeout=60)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def handle(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in self.dropped_headers
        }
        with self._lock:
            self.requests.append((request.command, request.path))
        fault = self._fault()
        if fault == "cut":
            self._cut(request)
            return
        if fault == "delay":
            time.sleep(self._random.uniform(0, _LATE))
        if fault in {"unavailable", "expired"}:
            body = b"<Error><Code>ExpiredToken</Code></Error>" if fault == "expired" else b""
            request.send_response(400 if body else 503)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body if request.command != "HEAD" else b"")
            return
        call = (request.command, request.path, headers, body)
        status, answer, data = self.forward(*call)
        if fault == "repeat":
            repeat = threading.Timer(self._random.uniform(0, _LATE), self.forward, call)
            self._repeats.append(repeat)
            repeat.start()
        if fault == "lost":
            self._cut(request)
            return
        request.send_response_only(status)
        for name, value in answer:
            if name.lower() not in {"connection", "transfer-encoding", "content-length"}:
                request.send_header(name, value)
        head = request.command == "HEAD"
        size = next((value for name, value in answer if name.lower() == "content-length"), None)
        request.send_header("Content-Length", size if head and size else str(len(data)))
        request.end_headers()
        if fault == "truncate" and data:
            request.wfile.write(data[: len(data) // 2])
            self._cut(request)
        elif not head:
            request.wfile.write(data)

    def _cut(self, request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        with suppress(OSError):
            request.wfile.flush()
            request.connection.shutdown(socket.SHUT_RDWR)
