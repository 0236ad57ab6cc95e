"""An agent may name any number of models: `/metrics` does not grow with them."""

from __future__ import annotations

from a2a_tasks.telemetry import run_counters
from a2a_tasks.telemetry.run_counters import MAX_MODELS, count_usage
from tests.support.metrics import samples


def test_models_beyond_the_first_ones_are_summed() -> None:
    known = set(run_counters._models)
    run_counters._models.clear()
    try:
        for number in range(1000):
            count_usage("spender", f"model-{number}", 2, 1, 0.25)
        count_usage("spender", "model-0", 1, 1, None)
    finally:
        run_counters._models.clear()
        run_counters._models.update(known)
    left = 1000 - MAX_MODELS
    tokens = samples("a2a_tokens_total", agent="spender")
    assert len(tokens) == 2 * (MAX_MODELS + 1)
    assert (tokens["others", "input"], tokens["model-0", "input"]) == (2 * left, 3)
    assert samples("a2a_cost_total", agent="spender")["others",] == left / 4
