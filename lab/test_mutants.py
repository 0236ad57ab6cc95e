"""The tool that counts which mistakes the suite notices makes the mistakes that it names, and believes no test that fails anyway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from lab import mutants
from lab.mutants import Kill, Mistake, candidates, compiled

pytestmark = pytest.mark.backend("sqlite")
CODE = '''"""A module."""
def one(a, b):
    """Say what was seen, and a result."""
    seen = []
    seen.append(a)
    if a < b and a:
        return seen, a + 1
    while b in (8, 9):
        b -= 1
    return seen, b
def other():
    logger.info("nothing of it is changed")
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "code.py").write_text(CODE)
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return "code.py"


def answers(module: str, mistakes: list[Mistake]) -> list[object]:
    """What the function answers with these mistakes in it."""
    code = compiled(module, mistakes, hits=False)["one", 2]
    one = FunctionType(code, {})
    return [answer(one, a, b) for a in (0, 1, 8) for b in (1, 2, 8, 9)]


def answer(one: FunctionType, a: int, b: int) -> object:
    try:
        return one(a, Bounded(b))
    except RecursionError:
        return "no end"


class Bounded(int):
    """A number that a loop may change a few times."""

    steps = 0

    def __sub__(self, other: int) -> Bounded:
        changed = Bounded(int(self) - other)
        changed.steps = self.steps + 1
        if changed.steps > 20:
            raise RecursionError
        return changed

    def __add__(self, other: int) -> Bounded:
        return self - -other


def test_each_kind_of_mistake_changes_what_its_function_answers(module: str) -> None:
    found = candidates(module)
    assert {mistake["kind"] for mistake in found} == {
        "left out",
        "condition turned",
        "comparison",
        "operator",
        "constant",
        "returns None",
    }
    assert {mistake["function"] for mistake in found} == {"one"}
    sound = answers(module, [])
    for mistake in found:
        assert answers(module, [{**mistake, "defined": 2}]) != sound, mistake


class Runs(Kill):
    """A judge of runs whose failed tests are given."""

    def __init__(self, failing: dict[str, set[str]]) -> None:
        super().__init__([], "")
        #: The tests that fail with the mistake, and without it.
        self.failing = failing
        self.ran: list[tuple[str, list[str]]] = []

    def _run(self, session: Any, job: Mistake | None, items: Sequence[Any]) -> tuple[str, str]:
        build = "mistaken" if job else "sound"
        names = [item.nodeid for item in items]
        self.ran.append((build, names))
        if not names:
            return "not reached", ""
        failed = [name for name in names if name in self.failing[build]]
        return ("noticed", failed[0]) if failed else ("survived", "")


def judged(mistaken: set[str], sound: set[str]) -> tuple[str, str]:
    items: Any = {name: SimpleNamespace(nodeid=name) for name in ("a", "b", "c")}
    session: Any = None
    return Runs({"mistaken": mistaken, "sound": sound})._judge(session, {"id": 1}, items)


@pytest.mark.parametrize(
    ("mistaken", "sound", "verdict"),
    [
        (set(), set(), ("survived", "")),
        ({"b"}, set(), ("noticed", "b")),
        ({"a", "b"}, {"a"}, ("noticed", "b")),
        ({"a"}, {"a"}, ("survived", "")),
        ({"a", "b", "c"}, {"a", "b", "c"}, ("not reached", "")),
    ],
)
def test_only_a_test_that_passes_without_the_mistake_notices_it(
    mistaken: set[str], sound: set[str], verdict: tuple[str, str]
) -> None:
    assert judged(mistaken, sound) == verdict
