"""Columns and fields of admin pages that are one expression of their row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from a2a_console.times import moment

__all__ = ["ago", "column", "cut"]


def column(description: str, show: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a method of a ModelAdmin, for `list_display` and `fields`, that shows something of a row."""

    @admin.display(description=description)
    def shown(_: Any, row: Any) -> Any:
        return show(row)

    return shown


def cut(text: str) -> SafeString | str:
    """Return the text, cut by CSS: its tooltip and a selection hold the whole text."""
    return format_html('<span class="a2a-cut" title="{}">{}</span>', text, text) if text else ""


def ago(at: datetime | None) -> SafeString | str:
    """Return the moment as "4 min ago" with the exact one as its title; without JavaScript it is the exact one."""
    if at is None:
        return "–"
    exact = moment(at)
    relative = '<relative-time datetime="{}" title="{}" format-style="short">{}</relative-time>'
    return format_html(relative, at.isoformat(), exact, exact)
