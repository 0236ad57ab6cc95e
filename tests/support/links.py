"""Links of pages that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["lost"]

LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The names of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def lost(text: str, page: Path) -> list[str]:
    """The links of a text that lead nowhere from this page."""
    found = []
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        if re.match(r"https?:|mailto:", link):
            continue
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            found.append(link)
    return found
