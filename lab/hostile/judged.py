"""Hostile requests of any binding, one after the other, with a look at the tables after each."""

from __future__ import annotations

import random
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from a2a_tasks.store.db import run_in_thread
from lab.matrix.outcomes import rows, settled
from tests.support.execution.waiting import until

__all__ = ["judged"]

Asked = TypeVar("Asked")
Said = TypeVar("Said")


async def judged(
    numbers: Iterable[int],
    there: Mapping[str, str],
    *,
    make: Callable[[int, Callable[[str, random.Random], str]], Asked],
    ask: Callable[[Asked], Awaitable[Said]],
    wrong: Callable[[Asked, Said], Iterable[str]],
    refused: Callable[[Said], bool],
) -> list[str]:
    """What is wrong with their answers, and what was changed though it was refused."""

    def known(name: str, chance: random.Random) -> str:
        strange = str(uuid.UUID(int=chance.getrandbits(128)))
        return there.get(name, strange) if chance.random() < 0.7 else strange

    found = []
    await until(settled)
    before = await run_in_thread(rows)
    for number in numbers:
        asked = make(number, known)
        said = await ask(asked)
        await until(settled)
        after = await run_in_thread(rows)
        problems = list(wrong(asked, said))
        if refused(said) and after != before:
            problems.append("something was changed")
        before = after
        found += [f"{number}: {problem}: {asked} -> {said}"[:1500] for problem in problems]
    return found
