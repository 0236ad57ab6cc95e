"""A filter of templates: characters that turn the text after them round are written out, wherever a page puts them.

Strangers choose ids, names and openings. One place for all lists is enough: `templates/admin/change_list.html`.
"""

from __future__ import annotations

import re

from django.template import Library

__all__ = ["register", "unturned"]

register = Library()
#: Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode TR 9, 36). What joins emojis is none of them.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@register.filter(is_safe=True)
def unturned(html: str) -> str:
    """The same, in which `[U+202E]` stands for such a character: neither text nor attributes can need one of ours."""
    return _TURNING.sub(lambda found: f"[U+{ord(found[0]):04X}]", html)
