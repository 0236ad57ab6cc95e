"""What a model that counts as Claude does costs: the tokens of a prompt cache are beside its input."""

from __future__ import annotations

from a2a_tasks.agents import Agent
from a2a_tasks.models import Usage
from a2a_tasks.store.db import run_in_thread
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import text_of

__all__ = ["assert_cache_is_counted"]

#: Two of its tokens come from the cache, and one is written to it.
SCRIPT = "CACHED 2 + WRITTEN 1 + SAY one two"
FIGURES = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")


async def assert_cache_is_counted(agent: Agent) -> None:
    """Assert that the ledger has all tokens of a request, those of the cache as a part of the input."""
    async with hosting():
        task = await Client(agent).send(SCRIPT)
    assert text_of(task) == ["one two"]
    rows = Usage.objects.filter(task_id=task.id).values_list(*FIGURES)
    ((given, read, written, said),) = await run_in_thread(list, rows)
    assert (read, written, said) == (2, 1, 2)
    assert given == len(SCRIPT.split())
