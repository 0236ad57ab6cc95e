"""Links of the pages lead to pages and headings that there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.campaigns.farm import report as farm
from tests.campaigns.faultlab import report as faultlab
from tests.campaigns.frameworks import report as frameworks
from tests.campaigns.hostile import page as hostile
from tests.support.rows import rows

PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *ROOT.glob("[a-z]*/README.md"),
        *ROOT.glob("deploy/*/README.md"),
        *(ROOT / "docs").rglob("*.md"),
    }
)
#: What writes pages from the results of campaigns.
CAMPAIGNS = (faultlab, farm, frameworks, hostile)
#: Folders of pages that the index names one by one.
FOLDERS = ("", "agents/", "frameworks/", "reference/")
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


@rows("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lead_somewhere(page: Path) -> None:
    assert lost(page.read_text(encoding="utf-8"), page) == []


@rows("campaign", CAMPAIGNS, ids=lambda campaign: campaign.__name__)
def test_the_page_of_a_campaign_is_not_kept_and_its_links_lead_to_pages_that_are(
    campaign: Any,
) -> None:
    assert campaign.PAGE.parent == ROOT / "var" / "reports"
    assert lost(campaign.INTRODUCTION, campaign.PAGE) == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    found = [page for folder in FOLDERS for page in docs.glob(f"{folder}*.md")]
    pages = {str(page.relative_to(docs)) for page in found} - {"README.md"}
    assert [name for name in sorted(pages) if f"({name}" not in index] == []
