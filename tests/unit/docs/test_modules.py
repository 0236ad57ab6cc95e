"""Each long module outside the core has a line that says why it is ours, and infrastructure has budgets."""

from __future__ import annotations

import re

import pytest

from tests import ROOT

pytestmark = pytest.mark.checkout
PAGE = (ROOT / "docs" / "reports" / "modules.md").read_text(encoding="utf-8")
#: What the project exists for: the protocol, the task log, running agents, delivering webhooks.
CORE = re.compile(r"a2a_tasks/(protocol|store|execution)/|a2a_push/(store/|\w+\.py)|/migrations/")
#: What libraries do elsewhere: servers, processes, calls out, sign-in.
INFRASTRUCTURE = re.compile(
    r"a2a_project/(grpc_server|sign_in)/|a2a_project/(drain|http_protocol|server)\.py|a2a_tasks/outbound/"
    r"|a2a_tasks/execution/(child|pipe|processes|threads|wake_up|watchdog)\.py"
)
LONG = 150

LENGTHS = {
    path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
    for path in sorted(ROOT.glob("a2a_*/**/*.py"))
}
BUDGETS = {
    name: int(lines) for name, lines in re.findall(r"^\| `(\S+)` \| (\d+) \|", PAGE, re.MULTILINE)
}


def test_each_long_module_says_why_it_is_ours() -> None:
    listed = set(re.findall(r"^\| `(\S+)` \| \D", PAGE, re.MULTILINE))
    long = {path for path, lines in LENGTHS.items() if lines > LONG}
    assert listed == {
        path for path in long if not CORE.search(path) and not INFRASTRUCTURE.search(path)
    }


def test_infrastructure_stays_within_its_budgets() -> None:
    infrastructure = {path for path in LENGTHS if INFRASTRUCTURE.search(path)}
    for name, budget in BUDGETS.items():
        paths = {path for path in infrastructure if path.startswith(name)}
        assert paths, name
        assert sum(LENGTHS[path] for path in paths) <= budget, name
        infrastructure -= paths
    assert not infrastructure, "without a budget"
