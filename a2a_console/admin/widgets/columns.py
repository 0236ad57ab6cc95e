"""Columns and fields of admin pages that are one expression of their row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin

__all__ = ["column"]


def column(description: str, show: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a method of a ModelAdmin, for `list_display` and `fields`, that shows something of a row."""

    @admin.display(description=description)
    def shown(_: Any, row: Any) -> Any:
        return show(row)

    return shown
