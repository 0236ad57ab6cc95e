"""`docs/settings.md` has every variable the host reads, with its true default, and no other."""

from __future__ import annotations

import re

from a2a_tasks.conf import HostSettings, names
from tests import ROOT

ROW = re.compile(r"^\| `([A-Z][A-Z0-9_]+)` \| (.+) \|$", re.MULTILINE)
#: Ways in which the code reads the environment.
READS = re.compile(r"""(?:\benv\.\w+|\bvariable|os\.environ\.get)\(\s*"([A-Z0-9_]+)""")
READERS = [
    ROOT / "a2a_project" / "settings.py",
    *(ROOT / "a2a_tasks" / "management" / "commands").glob("*.py"),
]
PAGE = {
    name: rest.split(" | ")
    for name, rest in ROW.findall((ROOT / "docs" / "settings.md").read_text(encoding="utf-8"))
}
#: Read, and nothing of the host.
NOT_OURS = {"DJANGO_SETTINGS_MODULE"}


def test_every_variable_that_is_read_is_on_the_page_and_no_other() -> None:
    read = {name for path in READERS for name in READS.findall(path.read_text(encoding="utf-8"))}
    read |= {f"A2A_{name}" for name in names()}
    assert set(PAGE) == read - NOT_OURS


def test_every_setting_of_the_host_has_its_type_default_and_comment() -> None:
    for name in names():
        kind, default, comment = PAGE[f"A2A_{name}"]
        value = vars(HostSettings)[name]
        assert kind == type(value).__name__
        shown = default.strip("`") if default != "empty" else ""
        assert shown == str(int(value) if isinstance(value, bool) else value)
        assert comment.endswith((".", "?", ")"))
