"""Frameworks whose agents the host can run. Guests bring the rows, as entry points of the group `a2a_host.frameworks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from a2a_tasks import guests
from a2a_tasks.agents.agent import Agent

__all__ = ["Framework", "find_install_line", "list_frameworks"]


@dataclass(frozen=True)
class Framework:
    """A framework and its adapter."""

    #: The package as Python imports it.
    package: str
    #: The package as pip installs it.
    requirement: str
    #: The class of its agents, wherever in the package it is.
    kind: str
    #: Module and class of the adapter, which is imported when it is needed.
    adapter: str
    #: The adapter's attribute for the agent.
    attribute: str

    def makes(self, thing: Any) -> bool:
        """Return whether the framework makes such an agent. The classes of the object tell, so nothing is imported."""
        return any(
            base.__name__ == self.kind and f"{base.__module__}.".startswith(f"{self.package}.")
            for base in type(thing).__mro__
        )

    def load(self) -> type[Agent]:
        """Import the adapter, and return its class."""
        module, _, name = self.adapter.partition(":")
        found: type[Agent] = getattr(import_module(module), name)
        return found


def list_frameworks() -> Sequence[Framework]:
    """Return the rows of all guests. No framework is imported for that."""
    tables = [point.load() for point in guests.list_guests(guests.FRAMEWORKS).values()]
    return [row for rows in tables for row in rows]


def find_install_line(package: str | None) -> str:
    """Return the command that installs a framework; empty = it is there, or no framework."""
    for framework in list_frameworks():
        names = (framework.package, framework.package.partition(".")[0])
        if package in names and not _is_installed(framework.package):
            return f"pip install '{framework.requirement}'"
    return ""


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # there is not even the package around it
        return False
