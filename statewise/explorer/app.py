"""The web application: a few files of its own, and questions to an :class:`~statewise.explorer.Explorer`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from statewise.errors import MissingExtraError, StatewiseError
from statewise.explorer.asked import Asked, BadJSONError
from statewise.explorer.edits import ORDERS
from statewise.explorer.explorer import Explorer
from statewise.explorer.guard import App, Guard
from statewise.explorer.limits import BusyError, Rates, Work
from statewise.explorer.neighbours import DISTANCES
from statewise.explorer.refusals import Refusal

if TYPE_CHECKING:
    from fastapi.requests import Request
    from fastapi.responses import Response

Endpoint = Callable[["Request"], Awaitable["Response"]]
JSON = "application/json"

#: The only files that are served, and what they are; all are read before the first request.
PAGES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/static/explorer.css": ("explorer.css", "text/css; charset=utf-8"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/static/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in ("app", "ask", "elements", "machine", "panel", "strips", "tools", "transport")
    },
}


def build_app(
    explorer: Explorer, *, port: int, token: str, rates: Rates | None = None, work: Work | None = None
) -> App:
    """The application behind its guard; needs the extra ``explore``.

    Args:
        explorer: that is asked.
        port: that the server listens on, for the check of the ``Host`` header.
        token: that every question must bring along.
        rates: how often may be asked; None for the usual limits.
        work: the threads that compute; None for the usual ones.
    """
    try:
        from fastapi import FastAPI
    except ImportError:
        raise MissingExtraError.of("statewise explore", package="fastapi", extra="explore") from None

    app, doing = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False), work or Work()
    for path, (name, kind) in PAGES.items():
        content = files("statewise.explorer").joinpath("static", name).read_bytes()
        app.add_route(path, _page(content, kind), methods=["GET"])
    app.add_route("/api/about", _page(_encoded(explorer.about()), JSON), methods=["GET"])
    for name, answer in questions(explorer).items():
        app.add_route(f"/api/{name}", _question(answer, doing), methods=["POST"])
    for cause in (404, 405, 500, Exception):
        app.add_exception_handler(cause, _failed)
    return Guard(app, port=port, token=token, rates=rates)


def _page(content: bytes, kind: str) -> Endpoint:
    """Answers with what was read or made beforehand."""
    from fastapi.responses import Response

    async def show(request: Request) -> Response:
        return Response(content, media_type=kind)

    return show


def _question(answer: Callable[[Asked], dict[str, Any]], work: Work) -> Endpoint:
    """Answers a question in one of the threads."""
    from fastapi.responses import Response

    async def ask(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            return _answered(Refusal(415, where="Content-Type", got=kind or "none", wanted=JSON))
        body = await request.body()
        try:
            content = await work.do(lambda: _encoded(answer(Asked(body))))
        except BadJSONError as error:
            return _answered(Refusal.of(400, error))
        except StatewiseError as error:
            return _answered(Refusal.of(422, error))
        except BusyError:
            busy = {"retry-after": "2"}
            return _answered(Refusal(503, where="server", got="too much to do", wanted="less", headers=busy))
        return Response(content, media_type=JSON)

    return ask


async def _failed(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    if status == 500:  # what went wrong inside is nobody's business outside
        return _answered(Refusal(500, where="server", got="an error", wanted="none", remedy="Try another input."))
    got = f"{request.method} of a path" if status == 405 else "another one"
    return _answered(Refusal(status, where="path", got=got, wanted="a page or a question of the explorer"))


def _answered(refusal: Refusal) -> Response:
    from fastapi.responses import Response

    return Response(refusal.body, refusal.status, headers=refusal.headers, media_type=JSON)


def questions(explorer: Explorer) -> dict[str, Callable[[Asked], dict[str, Any]]]:
    """What can be asked, by name; each takes all of its fields before it begins.

    Args:
        explorer: that is asked.
    """
    most = len(explorer.runs) - 1

    def trace(asked: Asked) -> dict[str, Any]:
        run, text, setting = asked.whole("run", 0, most, 0), asked.text(), asked.setting()
        shown = asked.whole("shown", 0, setting.draws, 0)
        asked.done()
        return explorer.trace(run, text, setting, shown=shown)

    def disturb(asked: Asked) -> dict[str, Any]:
        run, text, setting = asked.whole("run", 0, most, 0), asked.text(), asked.setting()
        by = asked.choice("by", ORDERS)
        asked.done()
        return explorer.disturb(run, text, setting, by=by)

    def nearest(asked: Asked) -> dict[str, Any]:
        run, text, by = asked.whole("run", 0, most, 0), asked.text(), asked.choice("by", DISTANCES)
        asked.done()
        return explorer.nearest(run, text, by=by)

    def fragile(asked: Asked) -> dict[str, Any]:
        run, setting = asked.whole("run", 0, most, 0), asked.setting()
        asked.done()
        return explorer.fragile(run, setting)

    return {"trace": trace, "disturb": disturb, "nearest": nearest, "fragile": fragile}


def _encoded(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()
