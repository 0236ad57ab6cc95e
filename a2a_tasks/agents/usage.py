"""Usage of models in a turn, summed by model: tokens, requests and cost, as the agent reports them."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import msgspec

from a2a_tasks.protocol.jsontext import write

__all__ = ["ModelUsage", "Usage", "begin_step", "check_usage", "find_usage", "unwrap"]

#: Not one of the host's own loggers, so that the line is in the run's log.
logger = logging.getLogger("turn.usage")
#: The largest figure of one report. It is beyond what any model does in one turn, and sums of it stay exact.
MOST = 10**12
MAX_NAME_LENGTH = 200
#: Names of models in one task; further ones are summed as OTHERS.
MAX_MODELS, OTHERS = 50, "others"
#: Marks the stored result of a step in which usage was reported.
MARK = "urn:a2a-host:usage"


class ModelUsage(msgspec.Struct, rename="camel", omit_defaults=True):
    """The use of one model. `cost` is in the agent's currency; None = unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None


class Usage:
    """Sums by the name of the model."""

    def __init__(self, text: str | bytes = "") -> None:
        """Make sums, from what `write` returned."""
        self.models = _decode(text) if text else {}

    def add(self, model: str, more: ModelUsage) -> None:
        """Add to the sum of a model."""
        if model not in self.models and len(self.models) >= MAX_MODELS:
            model = OTHERS
        so_far = self.models.setdefault(model, ModelUsage())
        so_far.requests += more.requests
        so_far.input_tokens += more.input_tokens
        so_far.output_tokens += more.output_tokens
        so_far.cached_tokens += more.cached_tokens
        if more.cost is not None:
            so_far.cost = (so_far.cost or 0) + more.cost

    def merge(self, other: Usage) -> None:
        """Add other sums."""
        for model, more in other.models.items():
            self.add(model, more)

    def write(self) -> str:
        """Return the sums as JSON; empty = there are none."""
        return write(self.models).decode() if self.models else ""

    def wrap(self, result: str) -> str:
        """Return the JSON of a step's result together with these sums, for `unwrap`."""
        return f'{{"{MARK}":{self.write()},"result":{result}}}' if self.models else result


_decode = msgspec.json.Decoder(dict[str, ModelUsage]).decode
_step: ContextVar[Usage | None] = ContextVar("a2a_step_usage", default=None)


def find_usage(whole: Usage) -> Usage:
    """Return the sums to which usage is added now: those of the step that is being taken, else those of the turn."""
    found = _step.get()
    return whole if found is None else found


@contextlib.contextmanager
def begin_step(whole: Usage) -> Iterator[Usage]:
    """Let the usage of the block be that of a step. If the block raises, it was spent, but no step keeps it."""
    around, spent = _step.get(), Usage()
    _step.set(spent)
    try:
        yield spent
    except BaseException:
        (whole if around is None else around).merge(spent)
        raise
    finally:
        _step.set(around)


def unwrap(kept: str, whole: Usage) -> Any:
    """Return the result in the stored JSON of a step, and add the usage that is kept with it."""
    result = msgspec.json.decode(kept)
    if isinstance(result, dict) and MARK in result:
        find_usage(whole).merge(Usage(write(result[MARK])))
        return result["result"]
    return result


def check_usage(model: Any, **figures: Any) -> bool:
    """Return whether a report can be counted; if not, the log of the run says why."""
    faults = [
        f"{name}={value!r}"
        for name, value in figures.items()
        if not (_is_cost(value) if name == "cost" else _is_count(value))
    ]
    if not (isinstance(model, str) and 0 < len(model) <= MAX_NAME_LENGTH and model.isprintable()):
        faults.append(f"model={str(model)[:MAX_NAME_LENGTH]!r}")
    if faults:
        logger.warning("turn.usage: not counted, because of %s", ", ".join(faults)[:1000])
    return not faults


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_cost(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and math.isfinite(value) and 0 <= value <= MOST)
