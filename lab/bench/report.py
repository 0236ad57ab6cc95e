"""Medians, ratios to the reference peer, and the table of requirements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from lab.bench.scenarios import TITLES

REFERENCE = "a2a-pg"
LOCAL, CELERY = "ours-local", "ours-celery"
#: Targets of this checkout, and the ones of the checkout before that they are compared with.
BEFORE = {LOCAL: "before-local", CELERY: "before-celery"}

Round = dict[str, float | None]
#: figure → target → median over the rounds that gave one
Medians = dict[str, dict[str, float | None]]


@dataclass
class Results:
    """The results so far: scenario → target → rounds, and the rounds that failed."""

    runs: dict[str, dict[str, list[Round]]]
    failures: list[str]

    def add(self, scenario: str, target: str, figures: Round) -> None:
        """Keep the figures of one round."""
        self.runs.setdefault(scenario, {}).setdefault(target, []).append(figures)

    def medians(self, scenario: str) -> Medians:
        """The medians of all figures of a scenario, derived ones included."""
        runs = self.runs.get(scenario, {})
        names = dict.fromkeys(key for rounds in runs.values() for one in rounds for key in one)
        out: Medians = {
            key: {
                target: _median([one.get(key) for one in rounds]) for target, rounds in runs.items()
            }
            for key in names
        }
        return out | _growth(out, "total s N=") if scenario == "S4" else out

    def value(self, scenario: str, figure: str, target: str) -> float | None:
        """One median."""
        return self.medians(scenario).get(figure, {}).get(target)

    def ratio(self, scenario: str, figure: str, target: str) -> float | None:
        """One median, divided by the reference's."""
        return _divide(
            self.value(scenario, figure, target), self.value(scenario, figure, REFERENCE)
        )


def _median(values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None


def _divide(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def _growth(medians: Medians, prefix: str) -> Medians:
    """`exponent A→B` for each pair of neighbouring sizes of a figure."""
    sizes = sorted(int(key.removeprefix(prefix)) for key in medians if key.startswith(prefix))
    out: Medians = {}
    for a, b in pairwise(sizes):
        small, large = medians[f"{prefix}{a}"], medians[f"{prefix}{b}"]
        quotients = {target: _divide(large.get(target), small.get(target)) for target in small}
        out[f"exponent {a}→{b}"] = {
            t: math.log(q) / math.log(b / a) if q else None for t, q in quotients.items()
        }
    return out


def show(value: float | None) -> str:
    """Three significant digits; a dash for what was not measured or not right."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == 0 or abs(value) >= 100 else f"{value:.3g}"


def scenario_table(results: Results, scenario: str) -> str:
    """A markdown table: the medians of each target, then the ratios to the reference and to the checkout before."""
    targets = list(results.runs.get(scenario, {}))
    others = [target for target in targets if target != REFERENCE] if REFERENCE in targets else []
    ratios_of = [(target, REFERENCE) for target in others]
    ratios_of += [pair for pair in BEFORE.items() if targets.count(pair[1])]
    heads = [f"{a} ÷" if b == REFERENCE else f"{a} ÷ {b}" for a, b in ratios_of]
    rows = [["", *targets, *heads]]
    for figure, medians in results.medians(scenario).items():
        ratios = [show(_divide(medians.get(a), medians.get(b))) for a, b in ratios_of]
        rows.append([figure, *(show(medians.get(target)) for target in targets), *ratios])
    return f"### {scenario}: {TITLES[scenario]}\n\n{_markdown(rows)}\n"


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


# --- requirements ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Requirement:
    """A bound on one figure of one target."""

    text: str
    target: str
    bound: str
    measure: Callable[[Results, str], float | None]
    met: Callable[[float], bool]


def _at_least(text: str, target: str, bound: float, scenario: str, figure: str) -> Requirement:
    def measure(results: Results, target: str) -> float | None:
        return results.ratio(scenario, figure, target)

    return Requirement(text, target, f"≥ {bound:g} ×", measure, lambda value: value >= bound)


def _at_most(text: str, target: str, bound: float, scenario: str, figure: str) -> Requirement:
    def measure(results: Results, target: str) -> float | None:
        return results.ratio(scenario, figure, target)

    return Requirement(text, target, f"≤ {bound:g} ×", measure, lambda value: value <= bound)


def _own(
    text: str, target: str, bound: float, unit: str, scenario: str, figure: str
) -> Requirement:
    def measure(results: Results, target: str) -> float | None:
        return results.value(scenario, figure, target)

    return Requirement(text, target, f"≤ {bound:g}{unit}", measure, lambda value: value <= bound)


def _list_growth(page: int) -> Requirement:
    def measure(results: Results, target: str) -> float | None:
        figure = f"page {page} ms N="
        return _divide(
            results.value("S3", f"{figure}1000000", target),
            results.value("S3", f"{figure}1000", target),
        )

    text = f"ListTasks, page {page}, 1,000,000 tasks ÷ 1,000 tasks"
    return Requirement(text, LOCAL, "≤ 1.5", measure, lambda value: value <= 1.5)


def _count_lost(results: Results, target: str) -> float | None:
    """Most events lost in any round: a median would hide one."""
    return max(
        (one["lost events"] or 0 for one in results.runs.get("S6", {}).get(target, [])),
        default=None,
    )


REQUIREMENTS = (
    _at_least("blocking `echo`, c=16, req/s", LOCAL, 8, "S1", "req/s c=16"),
    _at_least("blocking `echo`, c=16, req/s", CELERY, 2.5, "S1", "req/s c=16"),
    _at_least("GetTask, c=16, req/s", LOCAL, 5, "S2", "req/s c=16"),
    _own("ListTasks, page 1, 1,000,000 tasks", LOCAL, 10, " ms", "S3", "page 1 ms N=1000000"),
    _own("ListTasks, page 20, 1,000,000 tasks", LOCAL, 10, " ms", "S3", "page 20 ms N=1000000"),
    _list_growth(1),
    _list_growth(20),
    _at_most("`chunks 5000`, total time", LOCAL, 0.015, "S4", "total s N=5000"),
    _at_most("`chunks 5000`, total time", CELERY, 0.05, "S4", "total s N=5000"),
    _own("growth exponent 1,000 → 5,000 chunks", LOCAL, 1.1, "", "S4", "exponent 1000→5000"),
    _own("growth exponent 1,000 → 5,000 chunks", CELERY, 1.1, "", "S4", "exponent 1000→5000"),
    _at_most("first event of a stream, p50, c=32", LOCAL, 0.15, "S5", "p50 ms c=32"),
    _at_most("1 task, 500 chunks, 100 subscribers", LOCAL, 0.2, "S6", "all have all s"),
    Requirement("… events lost", LOCAL, "0", _count_lost, lambda value: value == 0),
    _own("1,000 idle streams, memory each", LOCAL, 42, " KiB", "S7", "KiB each"),
    _own("1,000 idle streams, OS threads more", LOCAL, 100, "", "S7", "threads more"),
)


def requirements_table(results: Results) -> str:
    """Return the table of requirements: the bound, the measured value, and whether it is met."""
    rows = [["", "target", "required", "measured", "met?"]]
    for it in REQUIREMENTS:
        value = it.measure(results, it.target)
        met = "not measured" if value is None else "yes" if it.met(value) else "**no**"
        rows.append([it.text, it.target, it.bound, show(value), met])
    return f"### Required (× = ratio to {REFERENCE}, same run)\n\n{_markdown(rows)}\n"
