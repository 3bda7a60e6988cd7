"""The questions that the page asks, and what hostile requests are told."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest

from explorer.asking import BASE, HEADERS, PORT, TOKEN, ask, refused, request_of
from statewise.explorer import Explorer, Setting, build_app
from statewise.explorer.app import PAGES
from statewise.explorer.guard import Guard
from statewise.explorer.limits import Pace, Rates, Work

OPEN = Rates(client=Pace(each_second=1e6, burst=10**6), process=Pace(each_second=1e6, burst=10**6),
             strangers=Pace(each_second=1e6, burst=10**6))  # fmt: skip


@pytest.fixture(scope="module")
def both(explorers: dict[str, Explorer]) -> Explorer:
    return Explorer([explorers["lstm"].runs[0], explorers["texts"].runs[0]])


@pytest.fixture(scope="module")
def app(both: Explorer) -> Any:
    return build_app(both, port=PORT, token=TOKEN, rates=OPEN)


def test_answers_are_those_of_the_explorer(app: Any, both: Explorer) -> None:
    assert ask(app, "/api/about").json() == both.about()
    fields = {"text": "0110", "gamma": 0.5, "draws": 3, "seed": 9, "temperature": 0.5, "mode": "multiplicative"}
    setting = Setting(gamma=0.5, draws=3, seed=9, temperature=0.5, mode="multiplicative")
    trace = ask(app, "/api/trace", {**fields, "shown": 2})
    assert (trace.status_code, trace.headers["content-type"]) == (200, "application/json")
    assert trace.json() == both.trace(0, "0110", setting, shown=2)
    edits = ask(app, "/api/disturb", {"run": 1, "text": "the film was dull", "by": "state"}).json()
    assert edits == both.disturb(1, "the film was dull", Setting(), by="state")
    near = ask(app, "/api/nearest", {"run": 1, "text": "the film was dull", "by": "euclidean"}).json()
    assert near == both.nearest(1, "the film was dull", by="euclidean")
    assert ask(app, "/api/fragile", {"gamma": 0.5}).json() == both.fragile(0, Setting(gamma=0.5))
    assert ask(app, "/api/trace", {"text": "0", "temperature": None}).json() == both.trace(0, "0", Setting())


def test_pages_are_whole_and_guarded_by_headers(app: Any) -> None:
    for path, (_, kind) in PAGES.items():
        answer = ask(app, path, headers={})
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers
        assert "set-cookie" not in answer.headers


def test_the_page_runs_nothing_inline_and_loads_nothing_from_elsewhere(app: Any) -> None:
    for path in PAGES:
        text = ask(app, path, headers={}).text
        assert not re.search(r"(src|href|url)\W{1,3}(https?:)?//", text)
        assert "innerHTML" not in text
        assert "eval(" not in text
        if path == "/":
            assert not re.search(r"<script(?![^>]*\bsrc=)", text)
            assert not re.search(r"\son\w+=|\sstyle=", text)


def test_every_file_that_is_loaded_is_served(app: Any) -> None:
    loaded = {
        found
        for path in PAGES
        for found in re.findall(r'(?:from "\./|/static/)([\w.]+)"', ask(app, path, headers={}).text)
    }
    assert {f"/static/{name}" for name in loaded} == set(PAGES) - {"/"}


@pytest.mark.parametrize("token", [None, "", "t" * 31, "t" * 33, "T" * 32, "é" * 16])
def test_without_the_token_nothing_is_answered(app: Any, token: str | None) -> None:
    headers: Any = {"Content-Type": "application/json"} | (
        {} if token is None else {"X-Statewise-Token": token.encode()}
    )
    for path, fields in (("/api/about", None), ("/api/trace", {"text": "0"}), ("/api/nothing", None)):
        error = refused(ask(app, path, fields, headers=headers), 401)
        assert "address" in error["remedy"]


def test_a_token_in_the_address_or_a_cookie_does_not_count(app: Any) -> None:
    refused(ask(app, f"/api/about?token={TOKEN}", headers={"Cookie": f"token={TOKEN}"}), 401)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil.example:{PORT}",
        f"[::1]:{PORT}",
        "",
    ],
)
def test_another_host_is_refused_everywhere(app: Any, host: str) -> None:
    for path in ("/", "/static/app.js", "/api/about"):
        refused(ask(app, path, headers={**HEADERS, "Host": host}), 421)


def test_localhost_is_this_host_too(app: Any) -> None:
    assert ask(app, "/api/about", headers={**HEADERS, "Host": f"LocalHost:{PORT}"}).status_code == 200


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": f"https://127.0.0.1:{PORT}"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
])  # fmt: skip
def test_a_page_of_another_origin_is_refused(app: Any, headers: dict[str, str]) -> None:
    refused(ask(app, "/api/trace", {"text": "0"}, headers={**HEADERS, **headers}), 403)


def test_the_own_page_is_let_in(app: Any) -> None:
    own = {**HEADERS, "Origin": BASE, "Sec-Fetch-Site": "same-origin"}
    assert ask(app, "/api/trace", {"text": "0"}, headers=own).status_code == 200


def test_no_preflight_is_answered(app: Any) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = ask(app, "/api/trace", headers=headers, method="OPTIONS")
    refused(answer, 403)
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("path", [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/....//app.py", "/..%5c..%5cetc",
    "/etc/passwd", "//etc/passwd", "/static/", "/static", "/static/app.js/..", "/static/app.js%00.css", "/index.html",
    "/docs", "/redoc", "/openapi.json", "/static/explorer.css~", "/favicon.ico", "/?file=/etc/passwd#",
])  # fmt: skip
def test_only_listed_files_are_served(app: Any, path: str) -> None:
    answer = ask(app, path, headers={})
    if path.startswith("/?"):
        assert answer.text == ask(app, "/", headers={}).text
    else:
        refused(answer, 404)


@pytest.mark.parametrize(
    "path", ["/api/../static/app.js", "/api/", "/api/trace/..%2f..%2fetc%2fpasswd", "/api/about.json", "/api/trace/"]
)
def test_only_listed_questions_are_answered(app: Any, path: str) -> None:
    assert ask(app, path).status_code == (200 if path == "/api/../static/app.js" else 404)


def test_methods_that_are_not_meant(app: Any) -> None:
    refused(ask(app, "/api/trace"), 405)
    refused(ask(app, "/api/about", {"text": "0"}), 405)
    refused(ask(app, "/", method="POST", content=b"x"), 405)
    refused(ask(app, "/api/trace", method="DELETE"), 405)


def test_too_large_a_body_is_not_read(app: Any) -> None:
    refused(ask(app, "/api/trace", content=b" " * 10_000_000), 413)

    async def endless() -> Any:
        for _ in range(1000):
            yield b" " * 1000

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.post("/api/trace", headers=HEADERS, content=endless())

    refused(asyncio.run(send()), 413)
    headers = {**HEADERS, "Content-Length": "9" * 30}
    refused(ask(app, "/api/trace", content=b"{}", headers=headers), 413)


@pytest.mark.parametrize("content", [
    b"", b"{", b"\xff\xfe", b'{"text": "\xc3\x28"}', b"[]", b'"text"', b"null", b"NaN", b"[" * 30_000,
    b'{"text": "0", "gamma": NaN}', b'{"text": "0", "gamma": -Infinity}',
    b'{"text": "0", "seed": ' + b"9" * 5000 + b"}", b'{"text": "0", "text": "1"}',
    *(b'{"text": "0", "run": ' + b"[" * deep + b"]" * deep + b"}" for deep in (100, 900, 960, 980)),
])  # fmt: skip
def test_what_is_no_json_object_is_refused(app: Any, content: bytes) -> None:
    refused(ask(app, "/api/trace", content=content), 400)


@pytest.mark.parametrize(("fields", "where"), [
    ({}, "text"), ({"text": 3}, "text"), ({"text": None}, "text"), ({"text": ["0"]}, "text"),
    ({"text": "0", "run": 2}, "run"), ({"text": "0", "run": -1}, "run"), ({"text": "0", "run": "0"}, "run"),
    ({"text": "0", "run": True}, "run"), ({"text": "0", "run": 0.0}, "run"), ({"text": "0", "gamma": 1e308}, "gamma"),
    ({"text": "0", "gamma": -1}, "gamma"), ({"text": "0", "gamma": "1"}, "gamma"),
    ({"text": "0", "gamma": 10**300}, "gamma"),
    ({"text": "0", "temperature": 0}, "temperature"), ({"text": "0", "temperature": [1]}, "temperature"),
    ({"text": "0", "draws": 10**9}, "draws"), ({"text": "0", "seed": 2**63}, "seed"),
    ({"text": "0", "shown": 9}, "shown"),
    ({"text": "0", "mode": "uniform"}, "mode"), ({"text": "0", "path": "/etc/passwd"}, "path"),
    ({"text": "0", "folder": "../.."}, "folder"), ({"text": "0", "__proto__": {}}, "__proto__"),
    ({"text": "0x"}, "text, symbol 2"), ({"text": "\x00"}, "text, symbol 1"), ({"text": "<script>"}, "text, symbol 1"),
    ({"text": "0" * 300}, "text"), ({"text": "0" * 9000}, "text"), ({"text": "0 " * 4000 + "0"}, "text"),
    ({"text": "\ud800"}, "text"), ({"text": "0\u202e1"}, "text, symbol 2"),
])  # fmt: skip
def test_a_field_that_is_wrong_is_named(app: Any, fields: dict[str, Any], where: str) -> None:
    assert refused(ask(app, "/api/trace", fields), 422)["where"] == where


def test_a_million_tokens_are_refused_before_they_are_counted(app: Any) -> None:
    refused(ask(app, "/api/trace", {"run": 1, "text": "the " * 1_000_000}), 413)
    refused(ask(app, "/api/trace", {"run": 1, "text": "a " * 3_999}), 422)


def test_texts_come_back_as_they_went(app: Any) -> None:
    """Control characters and marks are data: JSON carries them, and the page shows them as text."""
    word = "<script>alert(1)</script>"
    answer = ask(app, "/api/trace", {"run": 1, "text": f"the {word} \u0007bell"})
    assert answer.headers["content-type"] == "application/json"
    assert [token["known"] for token in answer.json()["tokens"]][1:] == [False] * (len(answer.json()["tokens"]) - 1)


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_json_is_a_question(app: Any, kind: str | None) -> None:
    headers = {"X-Statewise-Token": TOKEN} | ({} if kind is None else {"Content-Type": kind})
    refused(ask(app, "/api/trace", content=b'{"text": "0"}', headers=headers), 415)


def test_an_error_inside_is_not_told_outside(both: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("a secret at /tmp/somewhere.py")

    app = build_app(both, port=PORT, token=TOKEN, rates=OPEN)
    monkeypatch.setattr(both, "trace", broken)
    answer = ask(app, "/api/trace", {"text": "0"})
    refused(answer, 500)
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_flood_is_stopped_and_others_are_served(both: Explorer) -> None:
    rates = Rates(client=Pace(each_second=0.01, burst=5), process=Pace(each_second=0.01, burst=12))
    app = build_app(both, port=PORT, token=TOKEN, rates=rates)

    def asked(client: str, times: int) -> list[int]:
        headers = {**HEADERS, "X-Statewise-Client": client}
        return [ask(app, "/api/about", headers=headers).status_code for _ in range(times)]

    assert asked("one", 8) == [200] * 5 + [429] * 3
    assert asked("two", 1) == [200]
    assert asked("one", 1) == [429]
    # Whoever changes the name meets the bucket of all.
    assert [asked(f"another {number}", 1)[0] for number in range(10)] == [200] * 6 + [429] * 4
    answer = ask(app, "/api/about")
    assert int(answer.headers["retry-after"]) >= 1
    assert "Try again" in refused(answer, 429)["remedy"]


def test_strangers_do_not_take_the_turns_of_the_others(both: Explorer) -> None:
    app = build_app(both, port=PORT, token=TOKEN, rates=Rates(strangers=Pace(each_second=0.01, burst=3)))
    statuses = [ask(app, "/api/about", headers={}).status_code for _ in range(6)]
    assert statuses == [401] * 3 + [429] * 3
    assert ask(app, "/api/about").status_code == 200


def test_a_full_queue_is_told_to_come_again(both: Explorer) -> None:
    app = build_app(both, port=PORT, token=TOKEN, rates=OPEN, work=Work(workers=1, waiting=2))

    async def crowd() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
            requests = (client.request(**request_of("/api/disturb", {"text": "0" * 40})) for _ in range(8))
            return await asyncio.gather(*requests)

    found = asyncio.run(crowd())
    assert sorted({answer.status_code for answer in found}) == [200, 503]
    busy = next(answer for answer in found if answer.status_code == 503)
    refused(busy, 503)
    assert busy.headers["retry-after"] == "2"


def test_work_has_an_end_to_its_patience() -> None:
    import time

    from statewise.explorer.limits import BusyError

    async def impatient() -> None:
        work = Work(workers=1, waiting=4, patience=0.05)
        with pytest.raises(BusyError):
            await work.do(lambda: time.sleep(0.3))
        await asyncio.sleep(0.4)
        assert await work.do(lambda: 7) == 7
        work.close()

    asyncio.run(impatient())


def test_a_task_that_nobody_waits_for_counts_until_it_has_ended() -> None:
    from threading import Event

    from statewise.explorer.limits import BusyError

    async def crowd() -> None:
        work, going_on = Work(workers=1, waiting=1, patience=0.05), Event()
        with pytest.raises(BusyError):
            await work.do(lambda: going_on.wait(20))
        asked = list[int]()
        with pytest.raises(BusyError):
            await work.do(lambda: asked.append(1))
        going_on.set()
        while work._under_way:
            await asyncio.sleep(0.01)
        assert asked == [], "what was refused is not done later"
        assert await work.do(lambda: 7) == 7
        work.close()

    asyncio.run(crowd())


def test_a_body_that_never_ends_is_given_up(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statewise.explorer.guard.BODY_SECONDS", 0.05)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not sent:
            sent.append("begun")
            return {"type": "http.request", "body": b"{", "more_body": True}
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [
        (name.lower().encode(), value.encode()) for name, value in {**HEADERS, "Host": f"127.0.0.1:{PORT}"}.items()
    ]
    scope = {"type": "http", "method": "POST", "path": "/api/trace", "headers": headers, "client": ("127.0.0.1", 1)}
    asyncio.run(app(scope, receive, send))
    assert sent[1]["status"] == 408
    assert json.loads(sent[2]["body"])["error"]["where"] == "body"


def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing(*args: Any) -> Any:
        raise AssertionError

    asyncio.run(Guard(nothing, port=PORT, token=TOKEN)({"type": "websocket"}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
