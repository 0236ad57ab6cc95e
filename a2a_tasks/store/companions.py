"""What other apps keep beside a task, written in the task's own transaction: all of it is there, or none.

This app knows nothing of them; each registers itself when it is loaded (`AppConfig.ready`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from a2a_tasks.protocol.requests import SendMessageRequest

__all__ = [
    "Companion",
    "Forget",
    "Make",
    "Move",
    "Needed",
    "Tell",
    "forget",
    "needed",
    "of",
    "on_export",
    "on_purge",
    "on_succession",
    "register",
    "succeed",
    "told",
]

#: Writes beside the task with this primary key. What it raises undoes the message it came with.
Companion = Callable[[int], None]
#: From a request, the public id of its task and the code of its dialect: what is to be written, or None.
Make = Callable[[SendMessageRequest, str, str], Companion | None]
#: Takes what is kept beside one task, by its primary key, to the task that succeeds it.
Move = Callable[[int, int], None]
#: Those of these tasks, by their primary keys, that must not be removed yet, nor anything of their log.
Needed = Callable[[Collection[int]], set[int]]
#: Removes what is past its time, at most so many rows in one transaction, and returns how many.
Forget = Callable[[int], int]

#: Documents of what is kept beside these tasks, without secrets, for whom the tasks are.
Tell = Callable[[Collection[int]], Iterable[Mapping[str, Any]]]

_makes: list[Make] = []
_moves: list[Move] = []
_purges: list[tuple[Needed, Forget]] = []
_tells: dict[str, Tell] = {}


def register(make: Make) -> None:
    """Have `make` asked for each message what to write beside its task; it may refuse with an A2AError."""
    if make not in _makes:
        _makes.append(make)


def of(request: SendMessageRequest, task_id: str, dialect: str) -> tuple[Companion, ...]:
    """Everything to be written beside the task of this message."""
    made = (make(request, task_id, dialect) for make in _makes)
    return tuple(companion for companion in made if companion is not None)


def on_succession(move: Move) -> None:
    """Have `move` called in the transaction in which a new task takes over the id of an ended one."""
    if move not in _moves:
        _moves.append(move)


def succeed(old: int, new: int) -> None:
    """Take to task `new` what is kept beside task `old`. Called inside the transaction that makes `new`."""
    for move in _moves:
        move(old, new)


def on_purge(needed: Needed, forget: Forget) -> None:
    """Have retention leave alone what is `needed`, and call `forget` until it finds nothing."""
    if (needed, forget) not in _purges:
        _purges.append((needed, forget))


def needed(tasks: Collection[int]) -> set[int]:
    """Those of these tasks that somebody still needs."""
    return {task for ask, _ in _purges for task in ask(tasks)}


def on_export(name: str, tell: Tell) -> None:
    """Have what `tell` gives be in exports of a principal's data, under this name."""
    _tells[name] = tell


def told() -> Mapping[str, Tell]:
    """What is exported, by its name."""
    return _tells


def forget(most: int) -> int:
    """Remove some of what others keep and is past its time; 0 = nothing is any more."""
    return next((gone for _, remove in _purges if (gone := remove(most))), 0)
