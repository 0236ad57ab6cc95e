"""JSON as a folding tree, which the server renders. It is bounded by depth, by width, and by an allowance per page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from a2a_console.admin.widgets.formatting import escape_name, sendable

__all__ = ["Allowance", "tree"]

#: The largest number of levels; deeper ones are in the raw JSON only.
DEPTH = 12
#: The largest number of members of one object, or of items of one list.
WIDTH = 100
#: The largest number of characters of one string, and of a key.
STRING, KEY = 500, 100
#: Levels that are open at first.
OPEN = 1


@dataclass
class Allowance:
    """The bounds of one page: values in trees, and characters of Markdown."""

    nodes: int = 4_000
    markdown: int = 200_000


def tree(document: Any, allowance: Allowance) -> SafeString:
    """Return the document as nested `details`. Values use up the allowance; an ellipsis stands for the rest."""
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
    return escape_name(key, KEY) if isinstance(key, str) else str(key)


def _extent(value: dict[str, Any] | list[Any]) -> str:
    if isinstance(value, dict):
        return "{1 member}" if len(value) == 1 else f"{{{len(value)} members}}"
    return "[1 item]" if len(value) == 1 else f"[{len(value)} items]"


def _leaf(value: Any) -> SafeString:
    if isinstance(value, (dict, list)) and value:
        return format_html('<span class="a2a-quiet">{} too deep for here</span>', _extent(value))
    if isinstance(value, str):
        cut = value if len(value) <= STRING else value[:STRING] + "…"
        text = json.dumps(cut, ensure_ascii=False)
        return format_html('<span class="a2a-string" dir="auto">{}</span>', sendable(text))
    text = json.dumps(value)
    return format_html('<span class="a2a-scalar">{}</span>', text[:STRING])
