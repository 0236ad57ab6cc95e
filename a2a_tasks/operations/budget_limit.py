"""The refusal of messages for which a budget has nothing left."""

from __future__ import annotations

from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import RateLimited
from a2a_tasks.store.budgets import Spender, find_spent, list_in_force
from a2a_tasks.store.db import run_in_thread

__all__ = ["check_budgets"]


async def check_budgets(agent: str, caller: Caller) -> None:
    """Check that no budget refuses the message. Raises RateLimited with the time until the budget begins anew, Overloaded.

    A budget that pauses work or asks an operator refuses no message, unless an operator has refused to allow more. The
    sums of tasks are looked at by the run.
    """
    spender = Spender(agent, caller.tenant, caller.principal)
    if not list_in_force(spender):
        return
    for spent in await run_in_thread(find_spent, spender):
        if spent.refuses:
            # Whose sum it is may not be the caller's: the amounts are not told.
            text = f"Nothing is left of the budget {spent.budget.name!r}"
            raise RateLimited.until(spent.seconds_left, text) if spent.until else RateLimited(text)
