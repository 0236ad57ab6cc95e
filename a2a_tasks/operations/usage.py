"""The usage of models in the metadata of tasks, for clients that activate the extension."""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_tasks.agents.host_extensions import USAGE
from a2a_tasks.agents.usage import ModelUsage
from a2a_tasks.caller import OwnerScope
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.values import Raw, Task, TaskPage, replace
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.usage import read_usage
from a2a_tasks.streaming.stream import EventStream

__all__ = ["add_usage"]


async def add_usage(answer: Any, tenant: str, call: CallContext) -> Any:
    """Add the usage to the tasks in an answer: a task, a page, or the task that begins a stream. Raises Overloaded."""
    if isinstance(answer, EventStream):
        try:
            answer.first = await add_usage(answer.first, tenant, call)
        except BaseException:  # cancelled, too; the caller has no stream to close
            await answer.close()
            raise
    elif isinstance(answer, TaskPage):
        tasks = await _add(answer.tasks, call.scope(tenant))
        return msgspec.structs.replace(answer, tasks=tasks)
    elif isinstance(answer, Task):
        return (await _add([answer], call.scope(tenant)))[0]
    return answer


async def _add(tasks: list[Task], scope: OwnerScope) -> list[Task]:
    found = await run_in_thread(read_usage, scope, [task.id for task in tasks])
    return [_put(task, found[task.id]) if task.id in found else task for task in tasks]


def _put(task: Task, usage: dict[str, ModelUsage]) -> Task:
    metadata = msgspec.json.decode(task.metadata) if task.metadata else {}
    return replace(task, metadata=Raw(write({**metadata, USAGE.uri: usage})))
