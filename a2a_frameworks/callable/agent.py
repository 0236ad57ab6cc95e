"""Agents that are functions, or objects with `astream`, `ainvoke` or `invoke`, such as LangChain's runnables. docs/frameworks/callable.md is the guide."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from a2a_frameworks.shared.base import FrameworkAgent
from a2a_frameworks.table import METHODS
from a2a_tasks.agents import AgentError, Part, Turn, data
from a2a_tasks.agents.author_errors import definition, line_of
from a2a_tasks.agents.emission import Chunk, Reply, StatusUpdate

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
        with _in_words():
            answer = function(turn.text, **({"turn": turn} if _names_turn(function) else {}))
        if hasattr(answer, "__aiter__"):
            joins = getattr(function, "__name__", "") == METHODS[0]
            return _convert_each_later(answer, joins=joins)
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


def _is_data(value: Any) -> bool:
    """Return whether a value is a dict, or a model of pydantic that is no message."""
    marks = ("role", "additional_kwargs")  # of messages of providers and of LangChain
    is_message = hasattr(value, "content") and any(hasattr(value, mark) for mark in marks)
    return isinstance(value, Mapping) or (hasattr(value, "model_dump") and not is_message)


def _convert(value: Any, source: Any) -> Any:
    """Return a value as an agent may yield it: of a message, its text. Raises TypeError, with its line, for others."""
    if value is None or isinstance(value, SAID):
        return value
    if _is_data(value):
        from pydantic_core import to_jsonable_python  # noqa: PLC0415 - a worker needs it only here

        return data(to_jsonable_python(value, fallback=str))
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
    with _in_words():
        value = await answer
    return _convert(value, function)


async def _convert_each_later(values: Any, *, joins: bool) -> AsyncIterator[Any]:
    """Yield the values that are not empty; models also send empty ones.

    `joins`: dicts and models are states of one value, as in streams of LangChain. It is yielded at the end.
    """
    joined: Any = None
    try:
        with _in_words():
            async for value in values:
                if joins and _is_data(value):
                    joined = value if joined is None else _join(joined, value)
                elif (said := _convert(value, values)) not in ("", None):
                    yield said
        if joined is not None:
            yield _convert(joined, values)
    finally:
        if hasattr(values, "aclose"):
            await values.aclose()


def _join(before: Any, piece: Any) -> Any:
    """Return the sum of pieces that can be added, as LangChain does; otherwise the last piece is the whole value."""
    try:
        return before + piece
    except TypeError:
        return piece


def _convert_each(values: Any) -> Iterator[Any]:
    try:
        with _in_words():
            for value in values:
                if (said := _convert(value, values)) not in ("", None):
                    yield said
    finally:
        if hasattr(values, "close"):
            values.close()


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise AgentError, in words for clients, for errors of models that LangChain calls."""
    try:
        yield
    except Exception as fault:
        if words := _find_words(fault):
            raise AgentError(words) from fault
        raise


def _find_words(fault: Exception) -> str:
    if "langchain_core" not in sys.modules:
        return ""
    try:
        from a2a_frameworks.shared.langchain_words import LANGCHAIN_WORDS  # noqa: PLC0415
    except ImportError:  # its errors have no classes of their own before version 1.2
        return ""
    return next((words for kinds, words in LANGCHAIN_WORDS if isinstance(fault, kinds)), "")
