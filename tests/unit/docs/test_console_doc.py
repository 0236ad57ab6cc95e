"""The page of the console names all that an operator can do."""

from __future__ import annotations

import re
from fnmatch import fnmatch

from tests import ROOT
from tests.integration.audit.test_everything_leaves_an_entry import WAYS
from tests.support.rows import rows

PAGE = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """What is below a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@rows("way", sorted(WAYS))
def test_every_action_of_the_pages_is_in_the_table_with_its_entry(way: str) -> None:
    named = re.findall(r"`([a-z_]+\.[a-z_*]+)`", section("Every action"))
    entries = WAYS[way][1] - {"task.send"}  # what running again does as the owner
    assert [one for one in entries if not any(fnmatch(one, name) for name in named)] == []
