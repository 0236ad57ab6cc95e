"""What each folder of tests costs: `make test-fast ARGS="-p tests.support.costs"`.

Seconds of processor, which other work on the machine changes less than those on the clock: of the tests' own process, and
of the processes that they started and waited for. Servers are not counted, nor processes that a test leaves to others,
nor those of a fork server (`tests/support/execution/forked.py`).
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any

import pytest

OWN, CHILDREN, START = "cpu", "cpu of children", "cpu of start"

_tests: Counter[str] = Counter()
_seconds: defaultdict[tuple[str, str], float] = defaultdict(float)


def _now() -> tuple[float, float]:
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


def _measured(item: pytest.Item) -> Generator[None, object, object]:
    own, children = _now()
    try:
        return (yield)
    finally:
        until, until_children = _now()
        item.user_properties += [(OWN, until - own), (CHILDREN, until_children - children)]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Measure what comes before a test."""
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Measure the test."""
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Measure what comes after it."""
    return (yield from _measured(item))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what it took to start and to find the tests."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[START] = _now()[0]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take that from each process of `pytest -n`."""
    _seconds["(start and collection)", OWN] += getattr(node, "workeroutput", {}).get(START, 0.0)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up, in the process that controls the others; the last report of a test has all of it."""
    if report.when != "teardown":
        return
    path = report.nodeid.split("::", 1)[0]
    parts = path.split("/")[:-1]
    folder = "/".join(parts[: 4 if "console" in parts else 3])
    _tests[folder] += 1
    for name, value in report.user_properties:
        if name in {OWN, CHILDREN}:
            _seconds[folder, str(name)] += float(str(value))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show a line for each folder, the dearest first."""
    cost = {folder: _seconds[folder, OWN] + _seconds[folder, CHILDREN] for folder, _ in [*_seconds]}
    terminalreporter.section("seconds of processor")
    for folder in sorted(cost, key=lambda each: -cost[each]):
        children = _seconds[folder, CHILDREN]
        terminalreporter.write_line(
            f"{cost[folder]:7.1f} ({children:.1f} in children) {_tests[folder]:5d} tests  {folder}"
        )
