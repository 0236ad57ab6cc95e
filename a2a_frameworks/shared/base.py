"""The base class of adapters."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, ClassVar

from django.core.checks import CheckMessage, Error

from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.frameworks import find_install_line

__all__ = ["FrameworkAgent", "resolve"]


class FrameworkAgent(Agent, abstract=True):
    """An agent whose work is done by an object of a framework: an attribute of the class, or made by `build`."""

    #: Most frameworks keep the state of a conversation, and expect its messages one after the other.
    one_at_a_time: ClassVar[str] = "context"
    #: The package of the framework, as in `a2a_frameworks/table.py`; empty = it needs none.
    framework: ClassVar[str] = ""
    #: The name of the attribute for the object.
    attribute: ClassVar[str] = ""

    @property
    def hosted(self) -> Any:
        """Return the object in the attribute. A function stays a function, and does not become a method."""
        found = inspect.getattr_static(self, self.attribute)
        return found.__func__ if isinstance(found, staticmethod) else found

    def build(self, turn: Turn) -> Any:
        """Return the object for a turn. An override may be a coroutine function if the adapter is asynchronous."""
        return self.hosted

    def check(self) -> Iterable[CheckMessage]:
        """Yield the checks of every agent, and those of the framework and its object."""
        yield from super().check()
        where = f"{type(self).__module__}.{type(self).__qualname__}"
        if line := find_install_line(self.framework):
            yield Error(
                f"the package {self.framework} is not installed",
                hint=line,
                obj=where,
                id="a2a_tasks.E050",
            )
        elif type(self).build is FrameworkAgent.build and (fault := self.find_fault(self.hosted)):
            yield Error(
                f"{self.attribute} {fault}",
                hint=f"{self.attribute} = ..., or def build(self, turn)",
                obj=where,
                id="a2a_tasks.E051",
            )

    def find_fault(self, hosted: Any) -> str:
        """Return why the object cannot be hosted; empty = it can."""
        return "" if hosted is not None else "is missing"


async def resolve(value: Any) -> Any:
    """Return a value, or the result of the coroutine that stands for it."""
    return await value if inspect.isawaitable(value) else value
