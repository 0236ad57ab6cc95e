"""`tools_for` of the adapters, which loads the framework when it is called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["load_tools"]


def load_tools(package: str) -> Callable[..., Any]:
    """Return the function `tools_for` of an adapter."""

    def tools_for(*slugs: str) -> Any:
        """Return agents of the host as tools of the framework. Raises ValueError without any."""
        return import_module(f"{package}.tools").tools_for(*slugs)

    return tools_for
