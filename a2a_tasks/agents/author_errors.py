"""Reports with file and line for mistakes of agents that raise nothing, or nothing that names the author's line."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import sysconfig
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any, TypeVar

from a2a_tasks import guests
from a2a_tasks.protocol.soundness import check_storable, mend

__all__ = ["Unused", "definition", "keepable", "line_of", "note_change"]

#: Not one of the host's own loggers, so that the line is in the run's log.
values_logger = logging.getLogger("turn.values")

T = TypeVar("T")
#: Most values of one turn that are watched at once.
MAX_COUNT = 100
#: Directory of Python's own modules.
_PYTHON = sysconfig.get_path("stdlib") + os.sep
#: Packages that call functions in threads.
_THREADS = {"anyio", "asgiref"}


class Unused:
    """Values from the methods of a turn that its agent neither yielded nor awaited, each with the line of its call."""

    def __init__(self) -> None:
        # Keys are ids, since not all values are hashable. Each value is kept, so that its id is not used again.
        self._made: dict[int, tuple[Any, str, CodeType | None, int]] = {}

    def watch(self, value: T, ought: str, *, depth: int = 2) -> T:
        """Watch a value that a method returns to its caller, `depth` frames away.

        `ought` is the code that the caller has to write.
        """
        if len(self._made) < MAX_COUNT:
            caller = _author(sys._getframe(depth))  # noqa: SLF001 - inspect would read the source of each frame
            code, line = (caller.f_code, caller.f_lineno) if caller else (None, 0)
            self._made[id(value)] = (value, ought, code, line)
        return value

    def note_use(self, value: Any) -> None:
        """Forget a value that was yielded or awaited."""
        self._made.pop(id(value), None)

    def tell(self, logger: str, run: Any) -> None:
        """Log a warning for each value, by the logger of this name.

        `run`: the agent's method, whose definition replaces an unknown line.
        """
        for _, ought, code, line in self._made.values():
            where = f"{code.co_filename}:{line}" if code else definition(run)
            logging.getLogger(logger).warning("%s: without %s it does nothing", where, ought)
        self._made.clear()


def _author(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the author; None in `asyncio.to_thread(turn.ask)` and below the event loop."""
    while frame is not None:
        file = frame.f_code.co_filename
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if not (package in _THREADS or (file.startswith(_PYTHON) and "-packages" not in file)):
            return frame
        frame = None if package == "asyncio" else frame.f_back
    return None


def line_of(running: Any) -> str:
    """Return the `file:line` at which a generator or coroutine is suspended; empty = it has ended, or is neither.

    For nested generators, it is that of the innermost. A string is a result from another process.
    """
    while isinstance(running, GeneratorType) and isinstance(running.gi_yieldfrom, GeneratorType):
        running = running.gi_yieldfrom
    match running:
        case str():
            return running
        case GeneratorType():
            frame = running.gi_frame
        case AsyncGeneratorType():
            frame = running.ag_frame
        case CoroutineType():
            frame = running.cr_frame
        case _:
            return ""
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


def definition(function: Any) -> str:
    """Return the `file:line` of a function's definition, or its repr if it has none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def keepable(name: str, value: Any, where: str = "") -> Any:
    """Return a value that can be stored as JSON. If it was mended for that (`mend`), a warning names the author's line.

    `name` is that of the value in code, `where` its `file:line`, if the author does not call this. Raises TypeError,
    with the member's name, for values of types that JSON does not have.
    """
    mended = mend(value)
    check_storable(name, mended)
    if mended is not value:
        note_change(name, where)
    return mended


def note_change(name: str, where: str = "") -> None:
    """Log that a value was mended, with the author's line (`keepable`)."""
    values_logger.warning(
        "%s: %s was changed, because it is no JSON: half a surrogate pair, NaN, or an integer beyond 64 bits",
        where or _own_line(sys._getframe(1)),  # noqa: SLF001 - inspect would read the source of each frame
        name,
    )


@functools.cache
def _list_packages() -> frozenset[str]:
    """Return the names of the host's own package and of those with adapters."""
    adapters = guests.list_guests(guests.FRAMEWORKS).values()
    return frozenset({"a2a_tasks", *(point.module.partition(".")[0] for point in adapters)})


def _own_line(frame: FrameType | None) -> str:
    """Return the `file:line` of the innermost frame that is neither the host's nor an installed package's."""
    while frame is not None:
        file, name = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        installed = "-packages" in file or file.startswith((_PYTHON, "<"))
        if not (installed or name.partition(".")[0] in _list_packages()):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "in a package"
