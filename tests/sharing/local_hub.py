"""A hub in this process: all that huggingface_hub asks of one to make a repository, commit to it and fetch from it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class LocalHub:
    """Repositories by name: files by path, and what was asked."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.endpoint = ""

    def commit_of(self, name: str) -> str:
        digest = hashlib.sha1(name.encode())
        for path, content in sorted(self.files[name].items()):
            digest.update(path.encode() + content)
        return digest.hexdigest()


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    """A hub that listens on this machine while the block runs."""
    hub = LocalHub()

    class Handler(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    state: LocalHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        """Nothing: a test's output is its own."""

    def do_POST(self) -> None:
        path, body = self._begin()
        if path == "/api/repos/create":
            told = json.loads(body)
            name = f"{told['organization']}/{told['name']}" if told.get("organization") else told["name"]
            name = name if "/" in name else f"me/{name}"
            self.state.files.setdefault(name, {})
            self._say({"url": f"{self.state.endpoint}/{name}", "name": name})
        elif path.startswith("/api/models/") and "/preupload/" in path:
            asked = json.loads(body)["files"]
            # Small files travel inside the commit.
            self._say({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]})
        elif path.startswith("/api/models/") and "/commit/" in path:
            self._commit(path.removeprefix("/api/models/").partition("/commit/")[0], body)
        elif path == "/api/validate-yaml":
            self._say({"errors": [], "warnings": []})
        else:
            self._refuse(path)

    def do_GET(self) -> None:
        path, _ = self._begin()
        if path == "/api/whoami-v2":
            self._say({"name": "me", "type": "user", "orgs": []})
        elif path.startswith("/api/models/"):
            name = "/".join(path.removeprefix("/api/models/").split("/")[:2])
            if name not in self.state.files:
                self._refuse(path, "RepoNotFound")
            elif "/tree/" in path:
                self._say([self._entry(name, own) for own in self.state.files[name]])
            else:
                files = [{"rfilename": own} for own in self.state.files[name]]
                self._say({"id": name, "sha": self.state.commit_of(name), "siblings": files, "private": False})
        else:
            self._file(path)

    def do_HEAD(self) -> None:
        self._file(self._begin()[0])

    def _begin(self) -> tuple[str, bytes]:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(self._chunks())
        path = unquote(urlsplit(self.path).path)
        self.state.asked.append(f"{self.command} {path}")
        return path, body

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _commit(self, name: str, body: bytes) -> None:
        for line in body.splitlines():
            told = json.loads(line)
            if told["key"] == "file":
                self.state.files[name][told["value"]["path"]] = base64.b64decode(told["value"]["content"])
        made = self.state.commit_of(name)
        self._say({"success": True, "commitOid": made, "commitUrl": f"{self.state.endpoint}/{name}/commit/{made}"})

    def _entry(self, name: str, path: str) -> dict[str, Any]:
        content = self.state.files[name][path]
        return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def _file(self, path: str) -> None:
        name, _, rest = path.strip("/").partition("/resolve/")
        content = self.state.files.get(name, {}).get(rest.partition("/")[2])
        if content is None:
            self._refuse(path, "EntryNotFound" if name in self.state.files else "RepoNotFound")
            return
        tag = f'"{hashlib.sha1(content).hexdigest()}"'
        self._answer(content, {"ETag": tag, "X-Repo-Commit": self.state.commit_of(name)}, "application/octet-stream")

    def _say(self, told: Any) -> None:
        self._answer(json.dumps(told).encode(), {}, "application/json")

    def _answer(self, content: bytes, headers: dict[str, str], kind: str) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, path: str, code: str = "") -> None:
        content = json.dumps({"error": f"there is no {path}"}).encode()
        self.send_response(404)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", f"there is no {path}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
