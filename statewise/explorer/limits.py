"""How often and how much may be asked, so that one visitor cannot keep the others from their answers."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

MOST_BODY = 64 * 1024
MOST_CLIENTS = 512
WORKERS, WAITING = 1, 128  # networks of a few units hold the interpreter: a second thread would only wait for the first
PATIENCE = 20.0  # seconds that a request waits for its answer at most


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often something may happen.

    Args:
        each_second: on average.
        burst: at once.
    """

    each_second: float
    burst: int


CLIENT = Pace(each_second=15, burst=60)
PROCESS = Pace(each_second=150, burst=600)
STRANGERS = Pace(each_second=50, burst=300)  # pages, and requests without the token


class Bucket:
    """A token bucket: a request takes one token, and they come back at a steady rate.

    Args:
        pace: rate and size.
        now: the clock.

    >>> clock = iter([0.0, 0.0, 0.0, 0.5])
    >>> bucket = Bucket(Pace(each_second=2, burst=1), now=lambda: next(clock))
    >>> bucket.wait(), bucket.wait(), bucket.wait()
    (0.0, 0.5, 0.0)
    """

    def __init__(self, pace: Pace, *, now: Callable[[], float] = time.monotonic) -> None:
        self._pace, self._now = pace, now
        self._tokens, self._last = float(pace.burst), now()

    def wait(self) -> float:
        """Take a token; 0 if there was one, else in how many seconds there will be one."""
        now = self._now()
        self._tokens = min(self._pace.burst, self._tokens + (now - self._last) * self._pace.each_second)
        self._last = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._pace.each_second


class Rates:
    """Buckets of all visitors: one for each client, one for all of them, one for strangers.

    Args:
        client: how often one client may ask.
        process: how often all of them together.
        strangers: how often whoever has no token.

    A client is known by a name that it gives itself, which serves fairness only: whoever changes the name still meets
    the bucket of all.

    >>> rates = Rates(client=Pace(each_second=1, burst=1))
    >>> rates.wait("a"), rates.wait("b"), rates.wait("a") > 0
    (0.0, 0.0, True)
    """

    def __init__(self, *, client: Pace = CLIENT, process: Pace = PROCESS, strangers: Pace = STRANGERS) -> None:
        self._client, self._all, self._strangers = client, Bucket(process), Bucket(strangers)
        self._clients = OrderedDict[str, Bucket]()

    def wait(self, client: str) -> float:
        """Seconds after which a client may ask again; 0 for now.

        Args:
            client: its name.
        """
        if client not in self._clients:
            self._clients[client] = Bucket(self._client)
            if len(self._clients) > MOST_CLIENTS:
                self._clients.popitem(last=False)
        self._clients.move_to_end(client)
        return self._clients[client].wait() or self._all.wait()

    def stranger(self) -> float:
        """The same for whoever has no token."""
        return self._strangers.wait()


class BusyError(Exception):
    """Too many requests wait already, or an answer takes too long."""


class Work:
    """A few threads, with a queue of limited length before them.

    Args:
        workers: how many threads.
        waiting: how many requests may be under way.
        patience: seconds that each of them waits at most.
    """

    def __init__(self, *, workers: int = WORKERS, waiting: int = WAITING, patience: float = PATIENCE) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="explorer")
        self._waiting, self._patience, self._under_way = waiting, patience, 0

    async def do(self, task: Callable[[], Any]) -> Any:
        """Run a task in one of the threads.

        Args:
            task: that may take a while.
        """
        if self._under_way >= self._waiting:
            raise BusyError
        job = self._pool.submit(task)
        future = asyncio.wrap_future(job)
        self._under_way += 1
        # A task that has begun cannot be stopped: it counts until it has ended, also where nobody waits for it.
        future.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._patience)
        except TimeoutError:
            job.cancel()  # not the future, which would end at once, whether its task has begun or not
            raise BusyError from None

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self._under_way -= 1
        if not future.cancelled():
            future.exception()  # looked at, so that asyncio does not complain of one that nobody waited for

    def close(self) -> None:
        """End the threads; what waits is dropped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def seconds(wait: float) -> str:
    """Whole seconds for a ``Retry-After`` header.

    Args:
        wait: seconds.

    >>> seconds(0.2)
    '1'
    """
    return str(max(1, math.ceil(wait)))
