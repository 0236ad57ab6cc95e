"""A template filter for tables that are cards on a phone: each cell gets the name of its column."""

from __future__ import annotations

import re
from itertools import count

from django.template import Library
from django.utils.html import strip_tags

__all__ = ["label_cells", "register"]

register = Library()
_CELL = re.compile(r"<t[dh]\b(?! colspan)")


@register.filter(is_safe=True)
def label_cells(html: str) -> str:
    """Give a table the attribute `data-cards`, and its cells `data-column`. Its HTML is ours, with the texts of strangers escaped."""
    head, end, body = html.partition("</thead>")
    if not end:
        return html
    cells = head.partition("<thead")[2].split("<th")[1:]
    names = [strip_tags(cell.partition(">")[2].partition("</th>")[0]) for cell in cells]
    names = [" ".join(name.split()) for name in names]

    def label(row: str) -> str:
        place = count()
        return _CELL.sub(lambda cell: f'{cell[0]} data-column="{_take(names, next(place))}"', row)

    before, *rows = body.split("<tr")
    start = head.replace("<table", "<table data-cards", 1) + end
    return "<tr".join([start + before, *map(label, rows)])


def _take(names: list[str], place: int) -> str:
    return names[place] if place < len(names) else ""
