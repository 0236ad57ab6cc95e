"""Each long module outside the core has a line that says why it is ours."""

from __future__ import annotations

import re

from tests import ROOT

PAGE = (ROOT / "docs" / "reports" / "modules.md").read_text(encoding="utf-8")
#: What the project exists for: the protocol, the task log, running agents, delivering webhooks.
CORE = re.compile(r"a2a_tasks/(protocol|store|execution)/|a2a_push/(store/|\w+\.py)|/migrations/")
LONG = 150


def test_each_long_module_says_why_it_is_ours() -> None:
    paths = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("a2a_*/**/*.py"))]
    long = {
        path
        for path in paths
        if not CORE.search(path)
        and len((ROOT / path).read_text(encoding="utf-8").splitlines()) > LONG
    }
    assert set(re.findall(r"^\| `(\S+)` \|", PAGE, re.MULTILINE)) == long
