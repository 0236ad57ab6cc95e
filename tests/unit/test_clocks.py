"""Where two processes must agree on a time, it is the database's: other clocks are read only where nobody compares."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Calls that read the clock of the process.
OWN_CLOCKS = {"timezone.now", "time.time", "time.time_ns", "datetime.now", "datetime.datetime.now"}
#: The reads that are right, by file, with the reason.
SHOWN = "shown to people, and stored nowhere"
SPANS = "times of spans and log lines are those of the process that makes them, as in all of OpenTelemetry"
COMMAND = "a person at a terminal of one machine"
ALLOWED: dict[str, tuple[int, str]] = {
    "a2a_console/admin/access/api_key_admin.py": (1, "a proposed end in a form"),
    "a2a_console/admin/agents/agent_admin.py": (1, SHOWN),
    "a2a_console/admin/agents/agent_figures.py": (2, SHOWN),
    "a2a_console/admin/agents/card_previews.py": (1, SHOWN),
    "a2a_console/admin/tasks/bar_panel.py": (1, SHOWN),
    "a2a_console/admin/tasks/header.py": (1, SHOWN),
    "a2a_console/admin/tasks/queue.py": (2, SHOWN),
    "a2a_console/admin/tasks/run_admin.py": (1, SHOWN),
    "a2a_console/admin/tasks/sources.py": (1, SHOWN),
    "a2a_console/admin/tasks/task_admin.py": (1, SHOWN),
    "a2a_console/admin/tasks/task_filters.py": (2, SHOWN),
    "a2a_console/admin/tasks/task_page.py": (1, SHOWN),
    "a2a_console/admin/tasks/waterfall.py": (1, SHOWN),
    "a2a_console/admin/usage.py": (2, "the days of a report, in a form"),
    "a2a_console/admin/webhooks/config_admin.py": (1, SHOWN),
    "a2a_console/admin/webhooks/delivery_admin.py": (2, SHOWN),
    "a2a_console/admin/webhooks/endpoint_figures.py": (1, SHOWN),
    "a2a_console/admin/webhooks/receiver_admin.py": (1, SHOWN),
    "a2a_console/admin/widgets/filters.py": (2, SHOWN),
    "a2a_console/api/keys.py": (2, SHOWN + "; an end that is given must not be past"),
    "a2a_console/api/usage.py": (1, "the last day of a report"),
    "a2a_console/diagnosis/deliveries.py": (1, SHOWN),
    "a2a_console/playground.py": (1, SHOWN),
    "a2a_console/queue/budget_questions.py": (1, SHOWN),
    "a2a_console/statistics/counts.py": (1, SHOWN),
    "a2a_console/statistics/reports.py": (3, SHOWN),
    "a2a_console/webhooks/receiver_health.py": (2, SHOWN),
    "a2a_project/gauges.py": (1, SHOWN),
    "a2a_project/json_line.py": (1, SPANS),
    "a2a_project/management/commands/restart.py": (1, COMMAND),
    "a2a_tasks/agents/steps.py": (
        1,
        "the journal of tests of agents; that of the host overrides it",
    ),
    "a2a_tasks/bindings/card_endpoint.py": (1, "a header about the start of this process"),
    "a2a_tasks/execution/attempt_span.py": (1, SPANS),
    "a2a_tasks/execution/cancelled_tasks.py": (1, SPANS),
    "a2a_tasks/execution/presence.py": (1, "the start of this process, for people"),
    "a2a_tasks/execution/run_log.py": (1, SPANS),
    "a2a_tasks/execution/runner.py": (
        2,
        "notices that this machine slept, or that its clock was set",
    ),
    "a2a_tasks/execution/turns.py": (1, SPANS),
    "a2a_tasks/failpoints.py": (1, "only in tests of faults"),
    "a2a_doors/openai/completion.py": (1, SHOWN),
    "a2a_frameworks/executor/call.py": (1, "an object that a foreign executor gets"),
    "a2a_tasks/management/commands/api_keys.py": (2, COMMAND),
    "a2a_tasks/management/commands/card_keys.py": (2, COMMAND),
    "a2a_tasks/management/commands/verify_card.py": (1, COMMAND),
    "a2a_tasks/models/api_key.py": (1, SHOWN),
    "a2a_tasks/signatures/ring.py": (2, "times in settings, with overlaps of days"),
    "a2a_tasks/store/backend/server.py": (1, "the clock of SQLite"),
    "a2a_tasks/store/clock.py": (3, "compares this clock with the database's"),
    "a2a_tasks/telemetry/trace_context.py": (1, SPANS),
}


def find_reads(path: Path) -> Iterator[str]:
    """The reads of the process's clock in a module, as calls or as functions that are passed on."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in OWN_CLOCKS:
            yield ast.unparse(node)


def test_the_clock_of_a_process_is_read_only_where_no_other_process_compares() -> None:
    found = Counter(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("a2a_*/**/*.py")
        for _ in find_reads(path)
    )
    assert dict(found) == {path: count for path, (count, _) in ALLOWED.items()}, (
        "take a2a_tasks.store.clock, or say here why nobody else compares this time"
    )
