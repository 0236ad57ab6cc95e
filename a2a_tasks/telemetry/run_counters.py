"""Counters of this process for runs of agents, for `/metrics`.

The labels are bounded: agents whose code this process has, the first models, and names from the host's code. No tenant,
caller, task or URL is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from prometheus_client import Counter, Histogram

__all__ = [
    "OTHERS",
    "attempts",
    "call_seconds",
    "calls",
    "count_usage",
    "replayed_steps",
    "run_seconds",
    "tree_depth",
]

#: Names of models and currencies that a process shows; further ones are summed as OTHERS. Agents choose these names.
MAX_MODELS, MAX_CURRENCIES, OTHERS = 50, 5, "others"

attempts = Counter(
    "a2a_run_attempts_total",
    "Attempts at runs by the reason: `first`, `woken` (it was parked), `handed_back` (its process stopped), `crash`, "
    "`quarantine` (it may be what makes processes crash).",
    ["agent", "why"],
)
run_seconds = Histogram(
    "a2a_run_seconds",
    "Seconds of attempts at runs by outcome: `ended`, `failed` (the agent raised, or its task has failed), `canceled` (or "
    "taken over by another process), `parked`, `handed_back`, `crashed`.",
    ["agent", "outcome"],
    buckets=(0.01, 0.1, 1, 10, 60, 300, 1800, 7200),
)
replayed_steps = Counter(
    "a2a_step_replayed_total", "Steps whose result was kept by an earlier attempt.", ["agent"]
)
calls = Counter(
    "a2a_calls_total",
    "Calls of agents by agents, by the state of the called task when its answer was taken, or `refused`.",
    ["agent", "callee", "outcome"],
)
call_seconds = Histogram(
    "a2a_call_seconds",
    "Seconds from a call of an agent by an agent until the called task had ended, or asked.",
    ["agent", "callee"],
    buckets=(0.1, 1, 10, 60, 300, 1800, 7200, 86_400),
)
tree_depth = Histogram(
    "a2a_tree_depth",
    "Depths of tasks that agents have called: 1 = called by a task of a client.",
    buckets=(1, 2, 3, 4, 5, 6, 7, 8),
)
_tokens = Counter(
    "a2a_tokens_total",
    "Tokens of models that agents reported, by direction: `input`, `output`; `cached` and `cache_write` are parts of `input`.",
    ["agent", "model", "direction"],
)
_cost = Counter(
    "a2a_cost_total",
    "Cost of models that agents reported, or by the host's prices.",
    ["agent", "model", "currency"],
)
_models, _currencies = set[str](), set[str]()


def count_usage(
    agent: str,
    model: str,
    tokens: Mapping[str, int],
    cost: Decimal | float | None,
    currency: str,
) -> None:
    """Count a report of the usage of a model: `tokens` by direction; a `cost` of None is unknown.

    Call it once for each report, on the event loop of the runner's process.
    """
    model = _bound(model, _models, MAX_MODELS)
    for direction, count in tokens.items():
        _tokens.labels(agent, model, direction).inc(count)
    if cost is not None:
        _cost.labels(agent, model, _bound(currency, _currencies, MAX_CURRENCIES)).inc(float(cost))


def _bound(name: str, known: set[str], limit: int) -> str:
    """Return a name if it is one of the first ones, else OTHERS."""
    if name not in known and len(known) < limit:
        known.add(name)
    return name if name in known else OTHERS
