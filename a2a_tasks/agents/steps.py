"""Durable steps: what a turn has done is kept, and not done again when its process dies. docs/agents.md is the guide.

A journal belongs to one turn and its event loop. The host's own (execution/journal) keeps results in the store.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import msgspec

from a2a_tasks.agents.later import begun_on
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.soundness import check_json

__all__ = ["Journal", "Sleep", "Step"]

T = TypeVar("T")
#: Longest name of a step, in characters.
LONGEST_NAME = 200


class Journal:
    """Results of a turn's steps by name. This one forgets them with the process: it is for tests of agents.

    `Journal({"pay": "receipt 7"})` is that of a turn whose earlier attempt has paid.
    """

    def __init__(self, results: Mapping[str, Any] | None = None) -> None:
        #: Results as JSON, of this attempt and of earlier ones.
        self.results = {name: as_json(name, result) for name, result in (results or {}).items()}
        self._begun: set[str] = set()
        self._waits: set[Future[Any]] = set()
        self._stopped = False

    async def load(self) -> None:
        """Have the results of earlier attempts in `results`. Called before every step."""

    async def keep(self, name: str, result: str) -> None:
        """Keep a result; when this returns, it is there for every later attempt."""
        self.results[name] = result

    async def clock(self) -> float:
        """Seconds since the epoch, on a clock that all attempts share."""
        return time.time()

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        """Call a synchronous function of an asynchronous agent."""
        return await asyncio.to_thread(work)

    async def begin(self, name: str) -> str | None:
        """Take the name; returns the result if the step was taken before. Raises ValueError."""
        if name in self._begun:
            raise ValueError(f"this turn has a step {name!r} already; number them")
        check_name(name)
        self._begun.add(name)
        try:
            await self.load()
        except BaseException:
            self.give_up(name)
            raise
        return self.results.get(name)

    def give_up(self, name: str) -> None:
        """The step raised: it may be tried again under its name."""
        self._begun.discard(name)

    def wait(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Awaitable[T]]) -> T:
        """Wait in a thread for what is done on the loop. Raises CancelledError once the turn is stopped."""
        if self._stopped:
            raise CancelledError
        future = begun_on(loop, work)
        self._waits.add(future)
        if self._stopped:
            future.cancel()
        try:
            return future.result()
        finally:
            self._waits.discard(future)

    def stop(self) -> None:
        """Wake the threads that wait: nobody wants the turn any more."""
        self._stopped = True
        for future in tuple(self._waits):
            future.cancel()


class Step:
    """Something done once a turn: awaited, or in a synchronous agent waited for with `now`."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        name: str,
        work: Callable[[], Any],
        used: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """`used` is told when it is awaited or waited for."""
        self.name, self._journal, self._loop, self._work = name, journal, loop, work
        self._used = used

    def __await__(self) -> Generator[Any, None, Any]:
        self._used(self)
        return self._taken().__await__()

    async def _taken(self) -> Any:
        kept = await self._journal.begin(self.name)
        if kept is None:
            try:
                kept = as_json(self.name, await self._called())
                await self._journal.keep(self.name, kept)
            except BaseException:
                self._journal.give_up(self.name)
                raise
        return msgspec.json.decode(kept)

    async def _called(self) -> Any:
        if inspect.iscoroutinefunction(self._work):
            return await self._work()
        result = await self._journal.in_thread(self._work)
        return await result if inspect.isawaitable(result) else result

    def now(self) -> Any:
        """Take the step in a thread, which it stays in. RuntimeError on the event loop's own thread."""
        self._used(self)
        kept = self._wait(lambda: self._journal.begin(self.name))
        if kept is None:
            try:
                kept = result = as_json(self.name, self._called_here())
                self._wait(lambda: self._journal.keep(self.name, result))
            except BaseException:
                self._journal.give_up(self.name)
                raise
        return msgspec.json.decode(kept)

    def _called_here(self) -> Any:
        result = self._work()
        return self._wait(lambda: result) if inspect.isawaitable(result) else result

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._journal.wait(self._loop, work)


class Sleep:
    """A wait that goes on where it was when its process died: what is kept is the moment of waking."""

    def __init__(
        self,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        name: str,
        seconds: float,
        used: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """`used` is told when it is awaited or waited for."""
        self._journal, self._loop, self._name, self._seconds = journal, loop, name, seconds
        self._used = used

    def __await__(self) -> Generator[Any, None, None]:
        self._used(self)
        return self._slept().__await__()

    async def _slept(self) -> None:
        now = await self._journal.clock()

        async def waking() -> float:
            return now + self._seconds

        until = await Step(self._journal, self._loop, self._name, waking)
        await asyncio.sleep(max(0.0, until - now))

    def now(self) -> None:
        """Sleep in a thread; CancelledError wakes it. RuntimeError on the event loop's own thread."""
        self._used(self)
        self._journal.wait(self._loop, self._slept)


def check_name(name: str) -> None:
    """Raise ValueError for what cannot name a step."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(f"a step's name is 1 to {LONGEST_NAME} printable characters: {name!r}")


def as_json(name: str, result: Any) -> str:
    """The result of a step as it is kept. Raises TypeError for what JSON cannot say and give back."""
    try:
        check_plain(result)
        check_json(result)
        return write(result).decode()
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as fault:
        raise TypeError(f"the result of step {name!r} cannot be kept as JSON: {fault}") from fault


def check_plain(value: Any) -> None:
    """Raise TypeError for anything that would come back as something else than it was."""
    if isinstance(value, dict):
        for key, member in value.items():
            if type(key) is not str:
                raise TypeError(f"{key!r} is no name of a member")
            check_plain(member)
    elif isinstance(value, list | tuple):
        for item in value:
            check_plain(item)
    elif value is not None and type(value) not in {bool, int, float, str}:
        raise TypeError(f"{type(value).__name__} is not JSON")
