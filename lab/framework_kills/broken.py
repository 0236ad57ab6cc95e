"""Builds with a mistake, which the checker must catch: otherwise a campaign without violations proves nothing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from lab.faultlab.broken import build
from lab.faultlab.checker import Violation
from lab.faultlab.lab import Episode
from lab.faultlab.mistake import Broken
from lab.framework_kills.cases import STACK, Case, Kill, Script, make_case
from lab.framework_kills.lab import KillsLab, find_commit, plan, run

__all__ = ["BUILDS", "Build", "choose_cases", "play"]

#: Episodes until a build counts as not caught: some mistakes show only now and then.
TRIES = 5


@dataclass(frozen=True)
class Build:
    """A mistake, the framework whose agent shows it, and the kills that do."""

    broken: Broken
    framework: str
    fits: Callable[[Script, Kill], bool]


def _make(
    name: str,
    framework: str,
    fits: Callable[[Script, Kill], bool],
    breaks: tuple[str, ...],
    file: str,
    change: tuple[str, str],
) -> Build:
    return Build(Broken(name, file, *change, breaks, "kills"), framework, fits)


def _is_late(_: Script, kill: Kill) -> bool:
    """Was an answer used before?"""
    return kill.line > 0


def _follows_the_question(script: Script, kill: Kill) -> bool:
    return 0 <= script.question < kill.line and kill.what == "word"


def _ends(_: Script, kill: Kill) -> bool:
    return kill.name == "worker.ending"


def _is_kept(script: Script, kill: Kill) -> bool:
    return kill.name == "worker.step_kept" and kill.n == 1 and script.lines[kill.line].words > 0


BUILDS = {
    one.broken.name: one
    for one in (
        _make(
            "steps-are-not-kept",
            "pydantic_ai",
            _is_late,
            ("F4", "F5"),
            "a2a_tasks/agents/steps.py",
            ("                await self._journal.keep(self.name, kept)\n", ""),
        ),
        _make(
            "checkpoints-are-not-repeated",
            "langgraph",
            _is_late,
            ("F2", "F4", "F5"),
            "a2a_frameworks/langgraph/call.py",
            ("        await self._saver.replay()\n", ""),
        ),
        _make(
            "memory-is-written-before-the-answer",
            "openai_agents",
            _ends,
            ("F2", "F9"),
            "a2a_tasks/store/backend/postgres.py",
            (
                "    with transaction.atomic():\n        written = _append(batches)\n",
                "    change_conversations(batches)\n    with transaction.atomic():\n"
                "        written = _append(batches)\n        return written\n",
            ),
        ),
        _make(
            "artifacts-of-earlier-attempts-are-counted",
            "openai_agents",
            _follows_the_question,
            ("F10",),
            "a2a_tasks/store/tasks.py",
            (" if not is_own]", "]"),
        ),
        _make(
            "answers-of-earlier-attempts-are-not-counted",
            "pydantic_ai",
            _is_late,
            ("F10",),
            "a2a_frameworks/pydantic_ai/steps.py",
            ("            if not taken:\n", "            if False:\n"),
        ),
        _make(
            "words-come-after-the-step",
            "openai_agents",
            _is_kept,
            ("F10",),
            "a2a_frameworks/shared/output.py",
            ("        await self._queue.join()\n", ""),
        ),
        _make(
            "usage-is-not-written",
            "langgraph",
            _is_late,
            ("F14",),
            "a2a_tasks/execution/meter.py",
            ("            self.waiting.append(entry)\n", "            pass\n"),
        ),
        _make(
            "tools-are-told-of-again",
            "pydantic_ai",
            _is_late,
            ("F15",),
            "a2a_tasks/execution/tool_events.py",
            ("        if (event.kind, id_) in self._told:\n", "        if False:\n"),
        ),
    )
}


def choose_cases(made: Build, first: int) -> Iterator[Case]:
    """The cases from that seed on in which a kill fits."""
    cases = (make_case(made.framework, seed, STACK) for seed in count(first))
    fitting = (
        case
        for case in cases
        if any(made.fits(task, kill) for task in case.tasks for kill in task.kills)
    )
    return islice(fitting, TRIES)


def play(name: str, first: int) -> Episode:
    """Play cases on a build until the checker catches it. The episode has a violation if it does not."""
    made, begun, others = BUILDS[name], time.monotonic(), set[str]()
    with tempfile.TemporaryDirectory(prefix="a2a-build-") as directory:
        source = build(made.broken, Path(directory) / "build")
        with KillsLab(plan(made.framework, STACK, source=source)) as lab:
            for case in choose_cases(made, first):
                found = {violation.invariant for violation in run(lab, case).violations}
                caught, others = found & set(made.broken.breaks), others | found
                if caught:
                    return _tell(name, case.seed, begun, ", ".join(sorted(caught)), [])
    missed = Violation("broken", f"{name} was not caught; found: {sorted(others)}", [])
    return _tell(name, first, begun, "", [missed])


def _tell(name: str, seed: int, begun: float, caught: str, violations: list[Violation]) -> Episode:
    about = {"framework": BUILDS[name].framework, "commit": find_commit()}
    seconds = time.monotonic() - begun
    return Episode(
        name=name,
        seed=seed,
        seconds=seconds,
        tasks=0,
        violations=violations,
        recoveries=[],
        figures={**about, "caught by": caught},
    )
