"""Mistakes of agents that raise nothing, or nothing that names the author's line: both are told with file and line."""

from __future__ import annotations

import inspect
import logging
import sys
from types import AsyncGeneratorType, CodeType, CoroutineType, GeneratorType
from typing import Any, TypeVar

__all__ = ["Unused", "definition", "line_of"]

T = TypeVar("T")
#: Values of one turn that are watched at once.
MOST = 100


class Unused:
    """What the methods of a turn have made and its agent has neither yielded nor awaited, each with the line it was made in."""

    def __init__(self) -> None:
        # By id, since not all of them can be hashed. The value is kept with it, or its id might be another's.
        self._made: dict[int, tuple[Any, str, CodeType, int]] = {}

    def watch(self, value: T, ought: str) -> T:
        """Note a value that a method makes for the code that called it; `ought` says what that has to do with it."""
        if len(self._made) < MOST:
            caller = sys._getframe(2)  # noqa: SLF001 - inspect would read the source of every frame
            self._made[id(value)] = (value, ought, caller.f_code, caller.f_lineno)
        return value

    def used(self, value: Any) -> None:
        """It was yielded, or awaited."""
        self._made.pop(id(value), None)

    def tell(self, logger: str) -> None:
        """Warn of each, by the logger of this name."""
        for _, ought, code, line in self._made.values():
            told = "%s:%d: without %s it does nothing"
            logging.getLogger(logger).warning(told, code.co_filename, line, ought)
        self._made.clear()


def line_of(running: Any) -> str:
    """`file:line` where a generator or coroutine stands; empty = it has ended, or is none.

    Of nested generators that of the innermost. A string is the answer that another process has given already.
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
    """`file:line` of a function's definition, as far as it has one."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
