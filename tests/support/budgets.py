"""Budgets in force for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

from a2a_tasks.access import switch_cache
from a2a_tasks.models import Budget, BudgetUnit
from a2a_tasks.store import budgets
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.execution.host import Client
from tests.support.frameworks import status_text

__all__ = ["LOOP", "assert_loop_stops", "limited", "make_budget"]

#: A prompt that has the model call a tool eight times, and then say so.
LOOP = "\n".join([*(f'CALL add {{"a":{n},"b":1}}' for n in range(8)), "SAY done"])


async def make_budget(most: float, **about: Any) -> Budget:
    """A budget of so many calls of models, which this process knows."""
    values = {"name": "calls", "unit": BudgetUnit.CALLS, "limit": Decimal(str(most)), **about}
    made = Budget(**values)
    await run_in_thread(budgets.save, made)
    await run_in_thread(switch_cache.refresh)
    return made


@asynccontextmanager
async def limited(most: float, **about: Any) -> AsyncIterator[Budget]:
    """A budget as long as the block lasts."""
    made = await make_budget(most, **about)
    try:
        yield made
    finally:
        await run_in_thread(budgets.delete, made)
        switch_cache.forget()


async def assert_loop_stops(client: Client, model: ModelServer) -> None:
    """A loop of tools is stopped by a budget of three calls: no more than one call later."""
    async with limited(3):
        task = await client.send(LOOP)
    assert task.status.state.word == "failed"
    assert "Nothing is left of the budget 'calls'" in status_text(task)
    assert 3 <= len(model.exchanges) <= 4
