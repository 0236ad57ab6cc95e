"""Agents that are functions, or objects with `astream`, `ainvoke` or `invoke`, such as LangChain's runnables."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ClassVar

from a2a_tasks.agents import Part, Turn
from a2a_tasks.agents.author_errors import definition, line_of
from a2a_tasks.agents.emission import Chunk, Reply, StatusUpdate
from a2a_tasks.frameworks.base import FrameworkAgent
from a2a_tasks.frameworks.table import METHODS

__all__ = ["CallableAgent"]

#: Values that an agent may yield.
SAID = (str, Part, StatusUpdate, Chunk, Reply)


class CallableAgent(FrameworkAgent, abstract=True):
    """An agent whose work is done by a function of any kind.

    It gets the text of the message, and the turn if it has a parameter `turn`.
    """

    attribute = "function"
    function: ClassVar[Any] = None

    def find_fault(self, hosted: Any) -> str:
        """Return why the function cannot be hosted; empty = it can."""
        function = _find_function(hosted)
        if function is None:
            return f"is no function, and has none of {', '.join(METHODS)}"
        return "" if _takes(function) else "cannot be called with a text"

    @property
    def synchronous(self) -> bool:
        """Return whether the function needs a thread. A function that is made by `build` does."""
        function = _find_function(self.hosted)
        kinds = (function, getattr(function, "__call__", None))  # noqa: B004 - of an object
        is_async = (inspect.isasyncgenfunction, inspect.iscoroutinefunction)
        return not any(is_kind(kind) for is_kind in is_async for kind in kinds)

    def run(self, turn: Turn) -> Any:
        """Answer one message with what the function returns or yields."""
        function = _find_function(self.build(turn))
        if function is None:
            raise TypeError("there is no function to call")
        answer = function(turn.text, **({"turn": turn} if _names_turn(function) else {}))
        if hasattr(answer, "__aiter__"):
            return _convert_each_later(answer)
        if inspect.isawaitable(answer):
            return _convert_later(answer, function)
        if isinstance(answer, Iterator):
            return _convert_each(answer)
        return _convert(answer, function)


def _find_function(hosted: Any) -> Callable[..., Any] | None:
    """Return the function to call: that of a runnable, or the thing itself."""
    found = (getattr(hosted, name, None) for name in METHODS)
    return next((f for f in (*found, hosted) if callable(f)), None)


def _takes(function: Callable[..., Any]) -> bool:
    turn = {"turn": None} if _names_turn(function) else {}
    try:
        inspect.signature(function).bind("", **turn)
    except TypeError:
        return False
    except ValueError:  # a function in C without a signature
        return True
    return True


def _names_turn(function: Callable[..., Any]) -> bool:
    try:
        return "turn" in inspect.signature(function).parameters
    except ValueError:
        return False


def _convert(value: Any, source: Any) -> Any:
    """Return a value as an agent may yield it: of a message, its text. Raises TypeError, with its line, for others."""
    if value is None or isinstance(value, SAID):
        return value
    content = getattr(value, "content", None)
    if isinstance(content, list):  # blocks
        texts = (block.get("text", "") if isinstance(block, dict) else block for block in content)
        return "".join(texts)
    if isinstance(content, str):
        return content
    fault = TypeError(f"{type(value).__name__} cannot be content: give a str or a Part")
    fault.add_note(f"It was said at {line_of(source) or definition(source)}")
    raise fault


async def _convert_later(answer: Any, function: Any) -> Any:
    return _convert(await answer, function)


async def _convert_each_later(values: Any) -> AsyncIterator[Any]:
    """Yield the values that say something; models also send empty ones."""
    try:
        async for value in values:
            if (said := _convert(value, values)) not in ("", None):
                yield said
    finally:
        if hasattr(values, "aclose"):
            await values.aclose()


def _convert_each(values: Any) -> Iterator[Any]:
    try:
        for value in values:
            if (said := _convert(value, values)) not in ("", None):
                yield said
    finally:
        if hasattr(values, "close"):
            values.close()
