"""Links of the pages lead to pages and headings that there are."""

from __future__ import annotations

from pathlib import Path

from tests import ROOT
from tests.support.links import lost
from tests.support.rows import rows

PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("[a-z]*/README.md"),
        *ROOT.glob("lab/*/README.md"),
        *ROOT.glob("deploy/*/README.md"),
        *(ROOT / "docs").rglob("*.md"),
    }
)
#: Folders of pages that the index names one by one.
FOLDERS = ("", "agents/", "frameworks/", "reference/")


@rows("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lead_somewhere(page: Path) -> None:
    assert lost(page.read_text(encoding="utf-8"), page) == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    found = [page for folder in FOLDERS for page in docs.glob(f"{folder}*.md")]
    pages = {str(page.relative_to(docs)) for page in found} - {"README.md"}
    assert [name for name in sorted(pages) if f"({name}" not in index] == []
