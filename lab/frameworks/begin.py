"""A process that begins a task and carries it out, until it is killed: `python -m lab.frameworks.begin FOLDER SLUG TEXT`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

os.environ["DJANGO_SETTINGS_MODULE"] = "lab.frameworks.settings"

import django

django.setup()

from a2a_tasks.agents import registry
from tests.support.execution.host import Client


@asynccontextmanager
async def begun(folder: str, slug: str, text: str) -> AsyncIterator[tuple[str, str]]:
    """Let a process carry out a task as long as the block, and kill it then; yield the ids of task and context."""
    command = [sys.executable, "-m", "lab.frameworks.begin", folder, slug, text]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        task, context = (await process.stdout.readline()).decode().split()
        yield task, context
    finally:
        process.kill()
        await process.wait()


async def main(folder: str, slug: str, text: str) -> None:
    """Print the id of the task."""
    import_module(f"lab.frameworks.{folder}.agents")
    agent = registry.find_hosted(slug)
    assert agent is not None
    task = await Client(agent).begin(text)
    print(task.id, task.context_id, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
