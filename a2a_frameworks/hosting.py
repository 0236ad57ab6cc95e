"""Hosting a thing by one call: the adapter is found by its type."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

from a2a_frameworks.table import CALLABLE, FRAMEWORKS, METHODS
from a2a_tasks.agents import Agent, Skill, registry
from a2a_tasks.agents.frameworks import Framework, list_frameworks

__all__ = ["find_adapter", "host"]


def host(
    thing: Any,
    *,
    slug: str,
    skills: Sequence[Skill],
    name: str = "",
    description: str = "",
    **attributes: Any,
) -> type[Agent]:
    """Host an agent of a framework, or a function; return its class.

    The name is made from the slug, and the description is the first line of the docstring. `attributes` are those of
    the adapter, such as `streaming=False`. Raises TypeError for things that no adapter hosts, and for attributes that
    the adapter does not have.
    """
    framework = find_adapter(thing)
    adapter = framework.load()
    if unknown := [key for key in attributes if not hasattr(adapter, key)]:
        raise TypeError(f"{adapter.__name__} has no attribute {', '.join(unknown)}")
    title = name or slug.replace("-", " ").capitalize()
    members = {
        "__module__": sys._getframe(1).f_globals.get("__name__", ""),  # noqa: SLF001 - checks name it
        "slug": slug,
        "name": title,
        "description": description or _first_line(thing) or title,
        "skills": skills,
        framework.attribute: thing,
        **attributes,
    }
    made: type[Agent] = type("".join(slug.title().split("-")), (adapter,), members)
    registry.register(made)
    return made


def find_adapter(thing: Any) -> Framework:
    """Return the row of the adapter for a thing, by its type. Raises TypeError that lists what is supported."""
    # Its own rows are known also where there is no metadata; those of other packages come by entry points.
    rows = list(dict.fromkeys((*FRAMEWORKS, *list_frameworks())))
    if not isinstance(thing, type):
        for framework in rows:
            if framework.makes(thing):
                return framework
        if callable(thing) or any(callable(getattr(thing, method, None)) for method in METHODS):
            return CALLABLE
    kinds = ", ".join(f"{row.package}.{row.kind}" for row in rows)
    described = f"the class {thing.__qualname__}" if isinstance(thing, type) else repr(thing)
    raise TypeError(
        f"{described} cannot be hosted. Supported are instances of {kinds}; functions; "
        f"and objects with {', '.join(METHODS)}."
    )


def _first_line(thing: Any) -> str:
    """Return the first line of the docstring of a function, or of the class of an object."""
    written = thing if inspect.isroutine(thing) else type(thing)
    return (written.__doc__ or "").strip().partition("\n")[0]
