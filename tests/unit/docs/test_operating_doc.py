"""The runbook: it begins with a checklist, and names all that an operator can do."""

from __future__ import annotations

import re
from fnmatch import fnmatch

from a2a_tasks.management.commands.a2a import subcommands
from tests import ROOT
from tests.integration.audit.test_everything_leaves_an_entry import WAYS
from tests.support.rows import rows

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """What is below a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_it_begins_with_a_checklist_of_ten_lines() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE)[:2] == [
        "When the phone rings",
        "The console",
    ]
    steps = re.findall(r"^(\d+)\. ", section("When the phone rings"), re.MULTILINE)
    assert steps == [str(number) for number in range(1, 11)]


@rows("way", sorted(WAYS))
def test_every_action_of_the_pages_is_in_the_table_with_its_entry(way: str) -> None:
    named = re.findall(r"`([a-z_]+\.[a-z_*]+)`", section("Every action"))
    entries = WAYS[way][1] - {"task.send"}  # what running again does as the owner
    assert [one for one in entries if not any(fnmatch(one, name) for name in named)] == []


def test_every_subcommand_of_the_console_is_named() -> None:
    table = section("By command")
    assert [name for name, _ in subcommands() if f"`{name}`" not in table] == []
