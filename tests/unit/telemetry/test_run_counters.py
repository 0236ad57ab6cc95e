"""An agent may name any number of models: `/metrics` does not grow with them."""

from __future__ import annotations

import pytest

from a2a_tasks.telemetry import run_counters
from a2a_tasks.telemetry.run_counters import MAX_CURRENCIES, MAX_MODELS, count_usage
from tests.support.metrics import samples


def test_names_beyond_the_first_ones_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in ("_models", "_currencies"):
        monkeypatch.setattr(run_counters, names, set())
    for number in range(1000):
        count_usage(
            "spender", f"model-{number}", {"input": 2, "output": 1}, 0.25, f"C{number % 20:02}"
        )
    count_usage("spender", "model-0", {"input": 1, "output": 1}, None, "C00")
    left = 1000 - MAX_MODELS
    tokens, cost = (samples(f"a2a_{name}_total", agent="spender") for name in ("tokens", "cost"))
    assert len(tokens) == 2 * (MAX_MODELS + 1)
    assert (tokens["others", "input"], tokens["model-0", "input"]) == (2 * left, 3)
    assert len({currency for _, currency in cost}) == MAX_CURRENCIES + 1
    assert sum(n for (model, _), n in cost.items() if model == "others") == left / 4
