"""A process that begins a task and carries it out, until it is killed: `python -m frameworks.begin FOLDER SLUG TEXT`."""

import asyncio
import os
import sys
from importlib import import_module

os.environ["DJANGO_SETTINGS_MODULE"] = "frameworks.settings"

import django

django.setup()

from a2a_tasks.agents import registry
from tests.support.execution.host import Client


async def main(folder: str, slug: str, text: str) -> None:
    """Print the id of the task."""
    import_module(f"frameworks.{folder}.agents")
    agent = registry.find_hosted(slug)
    assert agent is not None
    task = await Client(agent).begin(text)
    print(task.id, task.context_id, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
