"""Guests: packages that the host finds by their entry points and does not import, such as the adapters of frameworks.

An installed package has entry points in its metadata. A checkout that is not installed has them in `pyproject.toml`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

__all__ = ["BINDINGS", "DOORS", "FRAMEWORKS", "GuestMissing", "list_guests", "load_guest"]

#: Groups of entry points: tables of frameworks (`agents/frameworks.py`), servers beside HTTP, and doors.
FRAMEWORKS, BINDINGS, DOORS = "a2a_host.frameworks", "a2a_host.bindings", "a2a_host.doors"
#: The file of a checkout.
PROJECT = Path(__file__).parent.parent / "pyproject.toml"


class GuestMissing(Exception):
    """No package has such an entry point; the text names it."""


@functools.cache
def list_guests(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by their names. Those of the checkout replace those of an older build."""
    installed = {point.name: point for point in entry_points(group=group)}
    lines = _read_project().get(group, {})
    return installed | {name: EntryPoint(name, value, group) for name, value in lines.items()}


def load_guest(group: str, name: str) -> Any:
    """Import what an entry point names. Raises GuestMissing if there is none of this name."""
    if (point := list_guests(group).get(name)) is None:
        raise GuestMissing(
            f"no installed package has the entry point {name!r} of the group {group}"
        )
    return point.load()


def _read_project() -> Mapping[str, Mapping[str, str]]:
    if not PROJECT.is_file():
        return {}
    groups: Mapping[str, Mapping[str, str]] = (
        tomllib.loads(PROJECT.read_text("utf-8")).get("project", {}).get("entry-points", {})
    )
    return groups
