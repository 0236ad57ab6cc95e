"""The refusal of messages for which a budget has nothing left."""

from __future__ import annotations

from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import RateLimited
from a2a_tasks.store.budgets import find_spent, list_in_force, tell
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import Spender

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
            text = tell(spent)
            raise RateLimited.until(spent.seconds_left, text) if spent.until else RateLimited(text)
