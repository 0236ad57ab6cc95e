"""A state has one colour wherever it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from a2a_console.webhooks.receiver_health import Word
from a2a_push.models import DeliveryStatus
from a2a_tasks.models import BulkState, RunStatus, SwitchState
from a2a_tasks.protocol.values import TaskState
from tests import ROOT

STATIC = ROOT / "a2a_console" / "static" / "a2a_console"
STATES: tuple[Iterable[str], ...] = (
    [state.word for state in TaskState],
    [*RunStatus, "behind", "parked"],
    [*DeliveryStatus, *BulkState, *SwitchState, *Word],
    ["alive", "draining", "dead", "replaced"],  # processes
    ["active", "settled", "disabled"],  # webhooks
    ["signed", "unsigned", "unverified", "intact", "broken", "verifying", "done", "refused"],
)
TONE = re.compile(r"^:is\(([^)]*)\) \{ --tone: var\(--(\w+)\); \}$", re.M)


def read_tones() -> list[tuple[str, str]]:
    text = (STATIC / "console.css").read_text(encoding="utf-8")
    return [(name, tone) for names, tone in TONE.findall(text) for name in names.split(", ")]


@pytest.mark.parametrize("state", [str(state) for states in STATES for state in states])
def test_each_state_has_one(state: str) -> None:
    assert len([name for name, _ in read_tones() if name == f".a2a-{state}"]) == 1


def test_no_other_rule_paints_a_state() -> None:
    own = {name for name, _ in read_tones()}
    painted = []
    for path in STATIC.glob("*.css"):
        for line in path.read_text(encoding="utf-8").splitlines():
            rule = re.fullmatch(r"\s*([^{}]*)\{(.*)\}", line)
            if rule is None or TONE.match(line):
                continue
            names = set(re.findall(r"\.a2a-[\w-]+", rule[1]))
            colours = re.findall(r"\b(?:color|background|fill): (?!var\(--tone|none)", rule[2])
            painted += [line] if names & own and colours else []
    assert painted == []


def test_the_playground_has_the_same() -> None:
    text = (STATIC / "playground" / "playground.css").read_text(encoding="utf-8")
    tones = dict(read_tones())
    shown = {
        f".a2a-{name}": tone.replace("wait", "waits")
        for names, tone in re.findall(
            r"^([^{}]*) \{ color: var\(--(good|bad|wait)\); \}", text, re.M
        )
        for name in re.findall(r"\.pg-([\w-]+)", names)
    }
    both = shown.keys() & tones.keys()
    assert {name: shown[name] for name in both} == {name: tones[name] for name in both}
    assert {".a2a-rejected", ".a2a-failed", ".a2a-completed"} <= both
