"""JSON as a tree that folds, drawn by the server and bounded: by depth, by width, and by what a page may have of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from a2a_tasks.admin.shown import named, sendable

__all__ = ["Allowance", "tree"]

#: Levels; what lies deeper is in the JSON.
DEPTH = 12
#: Members of one object, items of one list.
WIDTH = 100
#: Characters of one string, and of a key.
STRING, KEY = 500, 100
#: Levels that are open at first.
OPEN = 1


@dataclass
class Allowance:
    """What all of a page may have of what costs: values in trees, characters of Markdown."""

    nodes: int = 4_000
    markdown: int = 200_000


def tree(document: Any, allowance: Allowance) -> SafeString:
    """The document as nested details. Values are taken off the allowance; when it is used up, an ellipsis stands for the rest."""
    return _node(None, document, 0, allowance)


def _node(key: str | int | None, value: Any, depth: int, allowance: Allowance) -> SafeString:
    label = "" if key is None else format_html('<span class="a2a-key">{}</span> ', _key(key))
    if allowance.nodes <= 0:
        return format_html("{}…", label)
    allowance.nodes -= 1
    if not isinstance(value, (dict, list)) or not value or depth >= DEPTH:
        return format_html('<div class="a2a-leaf">{}{}</div>', label, _leaf(value))
    pairs: Iterable[tuple[str | int, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value)
    )
    inside = format_html_join(
        "",
        "<li>{}</li>",
        ((_node(name, item, depth + 1, allowance),) for name, item in islice(pairs, WIDTH)),
    )
    more = len(value) - WIDTH
    rest = format_html('<li class="a2a-quiet">… {} more</li>', more) if more > 0 else ""
    return format_html(
        '<details class="a2a-tree"{}><summary>{}<span class="a2a-quiet">{}</span></summary><ul>{}{}</ul></details>',
        " open" if depth < OPEN else "",
        label,
        _extent(value),
        inside,
        rest,
    )


def _key(key: str | int) -> str:
    return named(key, KEY) if isinstance(key, str) else str(key)


def _extent(value: dict[str, Any] | list[Any]) -> str:
    if isinstance(value, dict):
        return "{1 member}" if len(value) == 1 else f"{{{len(value)} members}}"
    return "[1 item]" if len(value) == 1 else f"[{len(value)} items]"


def _leaf(value: Any) -> SafeString:
    if isinstance(value, (dict, list)) and value:
        return format_html('<span class="a2a-quiet">{} too deep for here</span>', _extent(value))
    if isinstance(value, str):
        cut = value if len(value) <= STRING else value[:STRING] + "…"
        said = json.dumps(cut, ensure_ascii=False)
        return format_html('<span class="a2a-string" dir="auto">{}</span>', sendable(said))
    said = json.dumps(value)
    return format_html('<span class="a2a-scalar">{}</span>', said[:STRING])
