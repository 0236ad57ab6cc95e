"""Links of the pages lead to pages and headings that there are."""

from __future__ import annotations

import re
from pathlib import Path

from tests import ROOT
from tests.support.rows import rows

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The names of its headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@rows("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lead_somewhere(page: Path) -> None:
    lost = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        if re.match(r"https?:|mailto:", link):
            continue
        if not there.exists() or (
            anchor and there.suffix == ".md" and anchor not in anchors(there)
        ):
            lost.append(link)
    assert lost == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("reference/*.md"), *docs.glob("reports/*.md")]
    pages = {str(page.relative_to(docs)) for page in found} - {"README.md"}
    assert [name for name in sorted(pages) if f"({name}" not in index] == []
