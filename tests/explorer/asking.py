"""How tests ask: a client that is let in, and one that changes one thing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx

PORT, TOKEN = 8123, "t" * 32
BASE = f"http://127.0.0.1:{PORT}"
HEADERS = {"X-Statewise-Token": TOKEN, "Content-Type": "application/json"}


def ask(app: Any, path: str, fields: Any = None, **changes: Any) -> httpx.Response:
    """One request to the application itself; ``fields`` makes it a question."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.request(**request_of(path, fields, **changes))

    return asyncio.run(send())


def request_of(
    path: str,
    fields: Any = None,
    *,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> dict[str, Any]:
    """The parts of a request as httpx takes them."""
    body = content if content is not None or fields is None else json.dumps(fields).encode()
    return {
        "method": method or ("GET" if body is None else "POST"),
        "url": path,
        "headers": HEADERS if headers is None else headers,
        "content": body,
    }


def refused(answer: httpx.Response, status: int) -> dict[str, str]:
    """The error of an answer that must be one, which says everything and nothing more."""
    assert answer.status_code == status, answer.text[:300]
    (error,) = answer.json().values()
    assert set(error) == {"where", "got", "wanted", "remedy"}
    assert all(error[part] for part in ("where", "got", "wanted"))
    assert len(answer.content) < 2_000
    for leak in ("Traceback", 'File "', "/site-packages", "/tmp", ".py"):
        assert leak not in answer.text
    return dict(error)
