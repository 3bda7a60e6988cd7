"""Who may ask at all: the browser of the person who started the command, and only from the page itself."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from statewise.explorer.limits import MOST_BODY, Rates, seconds
from statewise.explorer.refusals import Refusal

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

API = "/api/"
TOKEN, CLIENT = b"x-statewise-token", b"x-statewise-client"
BODY_SECONDS = 10.0

#: What every answer says; nothing but the page's own files may run, load or frame it.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """Stands before the application and refuses what it should never see.

    The token is sent as a header, never as a cookie: cookies of 127.0.0.1 go to every port there, and a page of another
    origin cannot send a header of its own without asking first, which nobody answers.

    Args:
        app: what is guarded.
        port: that the server listens on.
        token: that whoever asks must know.
        rates: how often may be asked.
    """

    def __init__(self, app: App, *, port: int, token: str, rates: Rates | None = None) -> None:
        self._app, self._token, self._rates = app, token.encode(), rates or Rates()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, _with_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal.send(send)
            return
        if not scope["path"].startswith(API):
            await self._app(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(_whole_body(receive), BODY_SECONDS)
        except TimeoutError:
            await Refusal(408, where="body", got="only a part in 10 seconds", wanted="all of it").send(send)
            return
        except _TooLargeError:
            await _too_large().send(send)
            return
        if body is not None:  # else the client has gone
            await self._app(scope, _given(body), send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return Refusal(421, where="Host", got="another name", wanted="127.0.0.1 or localhost with this port")
        if not scope["path"].startswith(API):
            return _waiting(self._rates.stranger())
        return self._foreign(headers) or self._unknown(headers) or self._too_much(scope, headers)

    def _foreign(self, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        """A request that a page of another origin has sent."""
        origins, sites = headers.get(b"origin", []), headers.get(b"sec-fetch-site", [])
        if any(origin.lower() not in self._origins for origin in origins):
            return Refusal(403, where="Origin", got="another page", wanted="the page of this server")
        if any(site not in (b"same-origin", b"none") for site in sites):
            return Refusal(403, where="Sec-Fetch-Site", got="another site", wanted="the page of this server")
        return None

    def _unknown(self, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        """A request without the token; all such share one bucket, so that they cannot take the others' turns."""
        said = headers.get(TOKEN, [])
        if len(said) == 1 and secrets.compare_digest(said[0], self._token):
            return None
        return _waiting(self._rates.stranger()) or Refusal(
            401,
            where="X-Statewise-Token",
            got="no token, or another one",
            wanted="the token of this server",
            remedy="Open the address that the command has printed.",
        )

    def _too_much(self, scope: Scope, headers: dict[bytes, list[bytes]]) -> Refusal | None:
        names, peer = headers.get(CLIENT, []), scope.get("client")
        client = names[0][:64].decode("latin-1") if names else str(peer[0] if peer else "")
        refusal = _waiting(self._rates.wait(client))
        if refusal is not None:
            return refusal
        lengths = headers.get(b"content-length", [])
        if lengths and (not lengths[0].isdigit() or len(lengths[0]) > 12 or int(lengths[0]) > MOST_BODY):
            return _too_large()
        return None


class _TooLargeError(Exception):
    pass


def _too_large() -> Refusal:
    return Refusal(413, where="body", got="too many bytes", wanted=f"at most {MOST_BODY:,}")


def _waiting(wait: float) -> Refusal | None:
    if wait <= 0:
        return None
    return Refusal(
        429,
        where="requests",
        got="too many at once",
        wanted="fewer",
        remedy=f"Try again in {seconds(wait)} s.",
        headers={"retry-after": seconds(wait)},
    )


async def _whole_body(receive: Receive) -> bytes | None:
    """All bytes of a request; None where the client has gone."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BODY:
            raise _TooLargeError
        if not message.get("more_body", False):
            return b"".join(parts)


def _given(body: bytes) -> Receive:
    """A receiver of a body that is there already."""
    left = [body]

    async def receive() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return {"type": "http.disconnect"}

    return receive


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *own]}
        await send(message)

    return sending
