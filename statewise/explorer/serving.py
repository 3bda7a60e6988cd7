"""A server on this machine's own loopback, until somebody types Ctrl-C."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from statewise.errors import ArgumentError, MissingExtraError
from statewise.explorer.app import build_app
from statewise.explorer.explorer import Explorer

LOOPBACK = "127.0.0.1"  # and no other address: what is explored is nobody else's
HEADER_SECONDS = 5.0
MOST_CONNECTIONS = 256


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server listens.

    Args:
        port: on the loopback.
        token: that a visitor must know.

    >>> Address(port=8123, token="t").url
    'http://127.0.0.1:8123/#t'
    """

    port: int
    token: str

    @property
    def url(self) -> str:
        """The address to open; the token is a fragment, which browsers keep to themselves."""
        return f"http://{LOOPBACK}:{self.port}/#{self.token}"


def serve(explorer: Explorer, *, port: int = 0, ready: Callable[[Address], None] = lambda address: None) -> None:
    """Serve until the process is told to stop; Ctrl-C then raises ``KeyboardInterrupt``, as ever.

    Args:
        explorer: that is asked.
        port: to listen on; 0 takes a free one.
        ready: called once, as soon as the server listens.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError.of("statewise explore", package="uvicorn", extra="explore") from None

    with listening(port) as listener:
        address = Address(port=listener.getsockname()[1], token=secrets.token_urlsafe(24))
        app = build_app(explorer, port=address.port, token=address.token)

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                ready(address)

        Server(settings(app)).run([listener])


def listening(port: int) -> socket.socket:
    """A socket on the loopback.

    Args:
        port: 0 for a free one.
    """
    if type(port) is not int or not 0 <= port < 2**16:
        raise ArgumentError(where="--port", got=port, wanted="a port from 1 to 65535, or 0 for a free one")
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((LOOPBACK, port))
        found.listen(MOST_CONNECTIONS)
    except OSError as error:
        found.close()
        raise ArgumentError(
            where="--port",
            got=f"{port}: {error.strerror}",
            wanted="a port that is free",
            remedy="Leave --port out: a free one is found.",
        ) from None
    return found


def settings(app: Any) -> Any:
    """How uvicorn serves the application: no logs, no banner, short patience.

    Args:
        app: behind its guard.
    """
    import uvicorn

    return uvicorn.Config(
        app,
        http=patient_protocol(),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="critical",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=16 * 1024,
    )


def patient_protocol(header_seconds: float = HEADER_SECONDS) -> type[asyncio.Protocol]:
    """The protocol of uvicorn, which waits for the head of a request for ever, with an end to its patience.

    Args:
        header_seconds: that a connection may take to say what it wants, from its begin or its first byte on.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._head = self.loop.call_later(header_seconds, self._lost_patience)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            waits = self.conn.their_state is h11.IDLE
            if not waits and self._head is not None:
                self._head.cancel()
                self._head = None
            elif waits and self._head is None:
                self._head = self.loop.call_later(header_seconds, self._lost_patience)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._head is not None:
                self._head.cancel()
            super().connection_lost(exc)

        def _lost_patience(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Patient
