"""A real server on the loopback: many users, slow clients, and its end."""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from explorer.serving import Served, served
from statewise.errors import ArgumentError
from statewise.explorer.serving import listening, patient_protocol

USERS, ROUNDS = 50, 1
QUESTIONS = [
    ("trace", {"text": "1100100", "gamma": 0.2}),
    ("trace", {"run": 1, "text": "010011"}),
    ("disturb", {"text": "110010"}),
    ("nearest", {"run": 1, "text": "0110"}),
    ("fragile", {"gamma": 0.3}),
]


def headers(server: Served, client: str = "test") -> dict[str, str]:
    return {"X-Statewise-Token": server.token, "X-Statewise-Client": client}


def test_fifty_users_at_once_get_their_answers(server: Served) -> None:
    """Each asks every kind of question in turn; none is refused, none waits long."""
    taken: list[float] = []

    async def user(number: int) -> None:
        own = headers(server, f"user {number}")
        async with httpx.AsyncClient(base_url=server.base, headers=own, timeout=60) as client:
            assert (await client.get("/")).status_code == 200
            for step in range(ROUNDS * len(QUESTIONS)):
                name, fields = QUESTIONS[(number + step) % len(QUESTIONS)]
                begin = time.perf_counter()
                answer = await client.post(f"/api/{name}", json=fields)
                taken.append(time.perf_counter() - begin)
                assert answer.status_code == 200, answer.text
                await asyncio.sleep(0.2)

    async def crowd() -> None:
        await asyncio.gather(*map(user, range(USERS)))

    with httpx.Client(base_url=server.base, headers=headers(server), timeout=60) as first:
        for name, fields in QUESTIONS:
            assert first.post(f"/api/{name}", json=fields).status_code == 200
    begin = time.perf_counter()
    asyncio.run(crowd())
    ordered = sorted(taken)
    told = {
        "requests": len(taken),
        "seconds": round(time.perf_counter() - begin, 2),
        "median": round(statistics.median(ordered), 3),
        "95 %": round(ordered[int(0.95 * len(ordered))], 3),
        "max": round(ordered[-1], 3),
    }
    assert told["requests"] == USERS * ROUNDS * len(QUESTIONS)
    assert told["median"] < 10, told  # a loaded machine is no reason to fail; an answer that never comes is


def test_it_listens_on_the_loopback_only(server: Served) -> None:
    others = {entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in (*others, "127.0.0.2"):
        with socket.socket() as client:
            client.settimeout(2)
            assert client.connect_ex((str(address), server.port)) != 0


def test_slow_clients_are_cut_off_and_keep_nobody_waiting(server: Served) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for client in slow:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127")
    begin = time.perf_counter()
    assert httpx.get(f"{server.base}/api/about", headers=headers(server), timeout=30).status_code == 200
    slow[0].settimeout(40)
    assert slow[0].recv(100) == b""
    assert time.perf_counter() - begin < 40
    for client in slow:
        client.close()


def test_a_connection_that_says_nothing_ends_early_enough() -> None:
    """With a patience of a fraction of a second, around uvicorn's own protocol; a second request is waited for too."""
    import uvicorn

    async def hello(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def talk() -> list[bytes]:
        options: dict[str, Any] = {"log_config": None, "log_level": "critical", "lifespan": "off", "ws": "none"}
        config = uvicorn.Config(hello, http=patient_protocol(0.3), **options)
        server = uvicorn.Server(config)
        listener = listening(0)
        serving = asyncio.create_task(server.serve([listener]))
        while not server.started:
            await asyncio.sleep(0.02)
        port, heard = listener.getsockname()[1], []
        for sent in (b"", b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            heard.append(await asyncio.wait_for(reader.read(), 10))
            writer.close()
        server.should_exit = True
        await serving
        return heard

    nothing, half, one = asyncio.run(talk())
    assert (nothing, half) == (b"", b"")
    assert one.startswith(b"HTTP/1.1 200")
    assert one.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("sent", [
    b"\x00\xff\x16\x03\x01 garbage\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 20_000 + b"\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
])  # fmt: skip
def test_broken_requests_get_a_refusal_and_nothing_else(server: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(sent)
        head = client.recv(4096)
    assert head[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert b"Traceback" not in head
    assert b"server:" not in head.lower()


def test_ctrl_c_ends_it_at_once_and_quietly(runs: dict[str, Path]) -> None:
    with served([runs["lstm"]], "--examples", "0") as found:
        assert len(found.token) >= 22  # 128 bits in letters of 6
        answer = httpx.get(f"{found.base}/api/about", headers=headers(found), timeout=30).json()
        assert "told to read none" in answer["runs"][0]["why_no_examples"]
        code, said = found.interrupted()
    assert code in (0, 130)
    assert said == ""


def test_a_port_that_is_taken_is_told() -> None:
    with listening(0) as taken, pytest.raises(ArgumentError, match=r"--port.*a port that is free.*Leave --port out"):
        listening(taken.getsockname()[1])
    with pytest.raises(ArgumentError, match=r"--port: got 70000"):
        listening(70000)
