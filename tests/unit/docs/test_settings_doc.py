"""`docs/reference/settings.md` has every variable the host reads, with its true default, and no other. No page names another."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import get_commands

from a2a_tasks.conf import Compatibility, Constants, HostSettings
from tests import ROOT
from tests.support.rows import rows

ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \| (.+) \|$", re.MULTILINE)
#: Ways in which the code reads the environment.
READS = re.compile(r"""(?:\benv\.\w+|\bvariable|os\.environ\.get)\(\s*"([A-Z0-9_]+)""")
READERS = [
    ROOT / "a2a_project" / "settings.py",
    ROOT / "a2a_host" / "installation.py",
    ROOT / "deploy" / "gunicorn.conf.py",
    *(ROOT / "a2a_project" / "management" / "commands").glob("*.py"),
]
PAGE = {
    name: rest.split(" | ")
    for name, rest in ROW.findall(
        (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    )
}
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")]
)
#: Read, and nothing of the host.
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}
#: Read by gunicorn itself.
BY_GUNICORN = {"WEB_CONCURRENCY"}
#: Read only by hosts of the fault lab, and constants, which tests alone change.
FOR_TESTS = {"A2A_FAILPOINTS"} | {f"A2A_{name}" for name in vars(Constants)["__annotations__"]}
#: On the page of the protocol.
ELSEWHERE = {f"A2A_{name}" for name in vars(Compatibility)["__annotations__"]}


@pytest.mark.checkout
def test_every_variable_that_is_read_is_on_the_page_and_no_other() -> None:
    read = {name for path in READERS for name in READS.findall(path.read_text(encoding="utf-8"))}
    read |= {f"A2A_{name}" for name in vars(HostSettings)["__annotations__"]}
    assert set(PAGE) == (read | BY_GUNICORN) - NOT_OURS


def test_every_setting_of_the_host_has_its_type_default_and_comment() -> None:
    for name in vars(HostSettings)["__annotations__"]:
        kind, default, comment = PAGE[f"A2A_{name}"]
        value = vars(HostSettings)[name]
        assert kind == type(value).__name__
        shown = default.strip("`") if default != "empty" else ""
        assert shown == str(int(value) if isinstance(value, bool) else value)
        assert comment.endswith((".", "?", ")"))


@rows("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_variables_that_are_read(page: Path) -> None:
    named = set(re.findall(r"\bA2A_[A-Z0-9_]+", page.read_text(encoding="utf-8")))
    assert [
        name for name in sorted(named - FOR_TESTS - ELSEWHERE) if not any(map(fits(name), PAGE))
    ] == []


@rows("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_commands_that_there_are(page: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z]\w*)", page.read_text(encoding="utf-8")))
    assert sorted(named - set(get_commands())) == []


def fits(name: str) -> Callable[[str], bool]:
    """Compare variables with a name of a page; one that ends in `_` (`A2A_SSO_*`) stands for several."""
    return (lambda known: known.startswith(name)) if name.endswith("_") else name.__eq__
