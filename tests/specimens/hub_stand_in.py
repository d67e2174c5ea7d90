"""A model hub small enough to read: one folder as one repository, and refusals like the hub's own."""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class Hub:
    """Where the stand-in is, how often each file was asked for, how often sent from which revision, and how
    many bytes of it.
    """

    address: str
    asked: Counter[str] = field(default_factory=Counter)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)


def _handler(repo: str, folder: Path, hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, *, with_body: bool) -> None:
            path = self.path.split("?")[0]
            if "/gated" in path:
                return self._refuse(403, "GatedRepo")
            if f"/{repo}" not in path:
                return self._refuse(401, "RepoNotFound")
            if "no-such-revision" in path:
                return self._refuse(404, "RevisionNotFound")
            if path.startswith("/api/"):
                return self._send(json.dumps(self._listing(path)).encode(), with_body, {})
            file = folder / path.partition("/resolve/")[2].partition("/")[2]
            if not file.is_file():
                return self._refuse(404, "EntryNotFound")
            content = file.read_bytes()
            tag = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked:
                content = content[int(asked[1]) : int(asked[2]) + 1]
            hub.asked[file.name] += 1
            if with_body:
                revision = path.partition("/resolve/")[2].partition("/")[0]
                hub.sent[revision, file.name] += 1
                hub.bytes[file.name] += len(content)
            return self._send(content, with_body, tag, 206 if asked else 200)

        def _listing(self, path: str) -> object:
            if "/tree/" in path:
                below = folder / path.partition("/tree/")[2].partition("/")[2]
                found = below.rglob("*") if "recursive=True" in self.path else below.iterdir()
                return [_entry(file, folder) for file in sorted(found)]
            files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
            return {
                "id": repo,
                "modelId": repo,
                "sha": COMMIT,
                "siblings": [
                    {"rfilename": f.relative_to(folder).as_posix(), "size": f.stat().st_size} for f in files
                ],
            }

        def _send(self, content: bytes, with_body: bool, headers: dict[str, str], status: int = 200) -> None:
            self.send_response(status)
            for name, value in {
                "X-Repo-Commit": COMMIT,
                "Content-Length": str(len(content)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def _refuse(self, status: int, code: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", code)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _entry(file: Path, folder: Path) -> dict[str, object]:
    """What the listing of a tree says of a file or folder; the id of a file changes with its content."""
    plain = file.read_bytes() if file.is_file() else b""
    kind = "file" if file.is_file() else "directory"
    path = file.relative_to(folder).as_posix()
    return {"type": kind, "path": path, "size": len(plain), "oid": hashlib.sha1(plain).hexdigest()}


@contextmanager
def stand_in(repo: str, folder: Path) -> Iterator[Hub]:
    """A hub that has `folder` as `repo`, and a gated repository `some/gated`."""
    hub = Hub("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(repo, folder, hub))
    polls = {"poll_interval": 0.02}  # seconds; so long its end is waited for
    threading.Thread(target=server.serve_forever, kwargs=polls, daemon=True).start()
    try:
        yield replace(hub, address=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def served(repo: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The same, as the hub that this process talks to."""
    with stand_in(repo, folder) as hub, monkeypatch.context() as patched:
        patched.setattr(constants, "ENDPOINT", hub.address)
        patched.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + "/{repo_id}/resolve/{revision}/{filename}"
        )
        yield hub


def empty_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache in `folder`, and no word of the environment about models or proxies."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    proxies = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    for name in ("ATTNSCOPE_MODEL", "TRANSFORMERS_OFFLINE", *proxies):
        monkeypatch.delenv(name, raising=False)


def hub_files(folder: Path, *names: str, card: str = "") -> Path:
    """A folder with files of these names, each of which says its name, and the card of a data set."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    if card:
        (folder / "README.md").write_text(card)
    return folder
