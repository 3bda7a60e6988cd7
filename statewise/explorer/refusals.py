"""Errors as answers: where, got, wanted, remedy; never a traceback."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from statewise.errors import StatewiseError

SHOWN = 400  # characters of each part


class Refusal:
    """An answer that says what was wrong.

    Args:
        status: the HTTP status.
        where: what was wrong.
        got: what it was.
        wanted: what it should have been.
        remedy: what to do.
        headers: further ones.

    >>> Refusal(404, where="path", got="/x", wanted="a page").body
    b'{"error": {"where": "path", "got": "/x", "wanted": "a page", "remedy": ""}}'
    """

    def __init__(
        self,
        status: int,
        *,
        where: str,
        got: str,
        wanted: str,
        remedy: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status, self.headers = status, headers or {}
        parts = {"where": where, "got": got, "wanted": wanted, "remedy": remedy}
        self.body = json.dumps({"error": {name: part[:SHOWN] for name, part in parts.items()}}).encode()

    @classmethod
    def of(cls, status: int, error: StatewiseError) -> Refusal:
        """The answer to an error of the library.

        Args:
            status: the HTTP status.
            error: what happened.
        """
        got = error.got if isinstance(error.got, str) else repr(error.got)
        return cls(status, where=error.where, got=got, wanted=error.wanted, remedy=error.remedy)

    async def send(self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
        """Answer by it.

        Args:
            send: of the connection.
        """
        headers = {"content-type": "application/json", "content-length": str(len(self.body)), **self.headers}
        if self.status in (408, 413):
            headers["connection"] = "close"  # the rest of the body is not read
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        await send({"type": "http.response.body", "body": self.body})
