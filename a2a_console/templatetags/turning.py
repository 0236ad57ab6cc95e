"""A template filter that writes out characters that change the direction of text.

Ids, names and messages are untrusted. `admin/a2a_tasks/change_list.html` applies the filter to all lists of the console.
"""

from __future__ import annotations

import re

from django.template import Library

__all__ = ["register", "unescape_directions"]

register = Library()
#: Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode TR 9, 36). Joiners of emojis stay.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@register.filter(is_safe=True)
def unescape_directions(html: str) -> str:
    """Escape such characters as `[U+202E]`: neither our texts nor our attributes need one."""
    return _TURNING.sub(lambda found: f"[U+{ord(found[0]):04X}]", html)
