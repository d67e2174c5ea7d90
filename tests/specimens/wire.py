"""A network that fails now and then: it stands before a server, counts what is asked, and cuts connections.

It may stand before any; one of those is here, a real object store (moto's).
"""

import http.client
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_HOPS = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}


@dataclass
class Asked:
    """A request that came over the wire: which bytes were asked for, and how many were given."""

    method: str
    path: str
    first: int | None
    given: int = 0
    cut: bool = False


@dataclass
class Wire:
    """The address of the wire, its log, and what it does to the next ones: `fault(asked)` says it.

    `fault` gives None (pass it on), a number (so many bytes of the answer, then nothing) or "503".
    """

    address: str = ""
    log: list[Asked] = field(default_factory=list)
    fault: Callable[[Asked], int | str | None] = lambda asked: None

    def given(self, name: str) -> int:
        """Bytes of the content of a file that went over the wire."""
        return sum(asked.given for asked in self.log if asked.method == "GET" and self._of(asked, name))

    def cuts(self) -> int:
        """How many answers were cut off or refused."""
        return sum(asked.cut for asked in self.log)

    @staticmethod
    def _of(asked: Asked, name: str) -> bool:
        return urlsplit(asked.path).path.endswith(name)


@contextmanager
def wire(host: str, port: int) -> Iterator[Wire]:
    """A wire before a server."""
    made = Wire()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            wanted = re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))
            asked = Asked(self.command, self.path, int(wanted[1]) if wanted else None)
            made.log.append(asked)
            sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = made.fault(asked)
            if fault == "503":
                asked.cut = True
                self.send_error(503, "Slow Down")
                return
            onward = http.client.HTTPConnection(host, port, timeout=30)
            onward.request(self.command, self.path, sent, dict(self.headers.items()))
            answer = onward.getresponse()
            content = answer.read()
            self.send_response(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _HOPS:
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if isinstance(fault, int) and fault < len(content):
                content, asked.cut, self.close_connection = content[:fault], True, True
            asked.given = len(content) if answer.status in (200, 206) else 0
            self.wfile.write(content)
            if asked.cut:
                self.wfile.flush()
                self.connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    with serving(Handler) as made.address:
        yield made


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server with that handler, while this is open."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def object_store() -> Iterator[Wire]:
    """A real object store (moto's S3), behind a wire."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with wire(host, port) as made:
            yield made
    finally:
        server.stop()


KEYS = {"key": "test", "secret": "test"}


def on_s3(store: Wire) -> dict[str, Any]:
    """The options of a place in that store."""
    return {**KEYS, "endpoint_url": store.address, "client_kwargs": {"region_name": "us-east-1"}}
