"""Write the dashboards beside this file: `.venv/bin/python deploy/grafana/make_dashboards.py`. A test holds them fresh.

Each panel is a line of a table: its title, unit, and description, and its queries with the legends of their lines. Gauges
from the tables are equal in all web processes, so their panels show the maximum.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, COLUMNS = 8, 8, 3
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Panel(NamedTuple):
    """A chart of lines."""

    title: str
    #: A unit of Grafana.
    unit: str
    description: str
    #: The queries, each with the legend of its lines.
    queries: dict[str, str]


def rate(metric: str, by: str, labels: str = "") -> str:
    """Return the query of a counter's rate per second."""
    return f"sum by ({by}) (rate({metric}{{{labels}}}[$__rate_interval]))"


def quantile(share: float, metric: str, by: str, labels: str = "") -> str:
    """Return the query of a histogram's quantile."""
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', f'le, {by}', labels)})"


MINE = 'agent=~"$agent"'
DASHBOARDS = {
    "service": [
        Panel("Requests", "reqps", "Requests by operation.", {rate("a2a_requests_total", "method"): "{{method}}"}),
        Panel("Errors", "reqps", "Requests that were answered by an error. InternalError and Overloaded are the host's; others are the client's.",
              {rate("a2a_requests_total", "code", 'code!="ok"'): "{{code}}"}),
        Panel("Seconds to the answer", "s", "95 of 100 requests were answered faster. SendMessage waits for its agent.",
              {quantile(0.95, "a2a_request_seconds", "method"): "{{method}}"}),
        Panel("Dialects and bindings", "reqps", "Which versions of the protocol clients speak.",
              {rate("a2a_requests_total", "dialect, binding"): "{{dialect}} {{binding}}"}),
        Panel("Open streams", "short", "Streams of events that clients have open.", {"sum by (binding) (a2a_streams_open)": "{{binding}}"}),
        Panel("First event of a stream", "s", "95 of 100 streams had the agent's first event sooner.",
              {quantile(0.95, "a2a_first_event_seconds", "agent"): "{{agent}}"}),
        Panel("Event-loop lag", "s", "99 of 100 tasks of the event loop were woken with less delay. More than 0.3 s: something holds the loop.",
              {quantile(0.99, "a2a_event_loop_lag_seconds", "instance, process"): "{{process}} {{instance}}"}),
        Panel("Processes and database", "short", "1 = the process, or the database as a web process sees it, answers.",
              {'up{job="a2a"}': "{{process}} {{instance}}", "a2a_database_up": "database of {{instance}}"}),
        Panel("Memory", "bytes", "Memory of each process.", {'process_resident_memory_bytes{job="a2a"}': "{{process}} {{instance}}"}),
    ],
    "agents": [
        Panel("Runs by outcome", "ops", "Attempts at runs that ended.", {rate("a2a_run_seconds_count", "outcome", MINE): "{{outcome}}"}),
        Panel("Why attempts began", "ops", "More than `first` and `woken`: processes stopped, or crashed.",
              {rate("a2a_run_attempts_total", "why", MINE): "{{why}}"}),
        Panel("Seconds of a run", "s", "95 of 100 runs that ended were shorter.",
              {quantile(0.95, "a2a_run_seconds", "agent", f'{MINE}, outcome=~"ended|failed"'): "{{agent}}"}),
        Panel("Queue depth", "short", "Runs that wait for a slot.", {"max by (queue) (a2a_queue_depth)": "{{queue}}"}),
        Panel("Oldest run of a queue", "s", "How long the oldest run that could start has waited.",
              {"max by (queue) (a2a_queue_oldest_seconds)": "{{queue}}"}),
        Panel("Workers of a queue", "short", "Live processes that take runs from the queue.", {"max by (queue) (a2a_queue_workers)": "{{queue}}"}),
        Panel("Runs now", "short", "Runs that wait, run and are parked.", {"max by (status) (a2a_runs)": "{{status}}"}),
        Panel("Tasks that wait for people", "short", "Questions and authorizations without an answer.",
              {f"max by (agent) (a2a_waiting_for_people{{{MINE}}})": "{{agent}}"}),
        Panel("Longest wait for people", "s", "Age of the oldest of these tasks.",
              {f"max by (agent) (a2a_waiting_for_people_oldest_seconds{{{MINE}}})": "{{agent}}"}),
        Panel("Budgets that ask", "short", "Budgets with nothing left, about which operators are asked.",
              {"max(a2a_budgets_asking)": "budgets"}),
        Panel("Tokens", "short", "Tokens of models per second, as agents report them.",
              {rate("a2a_tokens_total", "model, direction", MINE): "{{model}} {{direction}}"}),
        Panel("Cost per hour", "short", "Cost of models at the present rate.",
              {f"3600 * {rate('a2a_cost_total', 'agent, currency', MINE)}": "{{agent}} {{currency}}"}),
        Panel("Calls of agents by agents", "ops", "By the state of the called task, or `refused`.",
              {rate("a2a_calls_total", "agent, callee, outcome", MINE): "{{agent}} → {{callee}} {{outcome}}"}),
        Panel("Seconds of a call", "s", "95 of 100 called tasks ended, or asked, sooner.",
              {quantile(0.95, "a2a_call_seconds", "agent, callee", MINE): "{{agent}} → {{callee}}"}),
        Panel("Depth of calls", "short", "95 of 100 called tasks were less deep.", {quantile(0.95, "a2a_tree_depth", "process"): "{{process}}"}),
        Panel("Replayed steps", "ops", "Steps that were not repeated, because an earlier attempt had kept their results.",
              {rate("a2a_step_replayed_total", "agent", MINE): "{{agent}}"}),
    ],
    "webhooks": [
        Panel("Attempts by outcome", "ops", "`host` is a fault of this host; the others but `delivered` are of receivers.",
              {rate("a2a_webhook_attempt_seconds_count", "outcome"): "{{outcome}}"}),
        Panel("Seconds of an attempt", "s", "95 of 100 attempts took less.", {quantile(0.95, "a2a_webhook_attempt_seconds", "outcome"): "{{outcome}}"}),
        Panel("Requests under way", "short", "Requests to webhooks that are open, by pusher.", {"a2a_webhooks_under_way": "{{process}} {{instance}}"}),
        Panel("Deliveries", "short", "Deliveries that are not settled, and webhooks that are due and that no pusher has claimed.",
              {"max(a2a_webhook_deliveries_pending)": "pending", "max(a2a_webhooks_due)": "due"}),
        Panel("Delay", "s", "Age of the oldest due delivery.", {"max(a2a_webhook_late_seconds)": "oldest"}),
        Panel("Receivers without deliveries", "short", "Receivers that get nothing now, by reason.",
              {"max by (by) (a2a_webhook_receivers_blocked)": "{{by}}"}),
    ],
}  # fmt: skip


def draw_panel(number: int, panel: Panel) -> dict[str, Any]:
    """Return a panel as Grafana has it."""
    row, column = divmod(number, COLUMNS)
    targets = [
        {"refId": chr(ord("A") + n), "expr": query, "legendFormat": legend}
        for n, (query, legend) in enumerate(panel.queries.items())
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def draw_dashboard(name: str) -> str:
    """Return a dashboard as JSON."""
    variables: list[dict[str, Any]] = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    ]
    if name == "agents":
        query = "label_values(a2a_run_attempts_total, agent)"
        all_of_them = {"multi": True, "includeAll": True, "allValue": ".*", "refresh": 2}
        variables.append(
            {"name": "agent", "label": "Agent", "type": "query", "datasource": SOURCE}
            | {"query": query, **all_of_them}
        )
    dashboard = {
        "uid": f"a2a-{name}",
        "title": f"A2A host: {name}",
        "tags": ["a2a"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": variables},
        "panels": [draw_panel(*each) for each in enumerate(DASHBOARDS[name])],
    }
    return f"{json.dumps(dashboard, indent=1)}\n"


if __name__ == "__main__":
    for name in DASHBOARDS:
        (HERE / f"{name}.json").write_text(draw_dashboard(name), encoding="utf-8")
