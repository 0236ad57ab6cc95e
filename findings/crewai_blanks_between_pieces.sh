#!/bin/sh
# Package:   crewai 1.15.30 (PyPI), with a2a-sdk 0.3.26 on both sides
# Behaviour: its A2A client puts a blank between the pieces of a streamed artifact, which are one text ("append"), so an
#            answer that comes token by token has blanks inside its words.
# Output:    'Hel lo'
# Run:       sh findings/crewai_blanks_between_pieces.sh   (needs python3, PyPI and a gigabyte; minutes)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "crewai[a2a]==1.15.30" "a2a-sdk[http-server]==0.3.26" uvicorn
cat > "$place/try.py" <<'PYTHON'
import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, Part, TextPart
from a2a.utils import new_task
from crewai.a2a.utils.delegation import aexecute_a2a_delegation

sys.stdout, told = sys.stderr, sys.stdout  # it prints boxes


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        task = context.current_task or new_task(context.message)
        await queue.enqueue_event(task)
        updater = TaskUpdater(queue, task.id, task.context_id)
        for piece in ("Hel", "lo"):
            parts = [Part(root=TextPart(text=piece))]
            await updater.add_artifact(parts, artifact_id="a", append=piece != "Hel")
        await updater.complete()

    async def cancel(self, context, queue):
        raise NotImplementedError


async def main():
    server = uvicorn.Server(uvicorn.Config(lambda: None, port=0, log_level="error"))
    listening = server.config.bind_socket()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    card = AgentCard(
        name="a", description="a", url=url, version="1", skills=[],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    )
    handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
    server.config.app = A2AStarletteApplication(card, handler).build()
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    card_url = f"{url}.well-known/agent-card.json"
    found = await aexecute_a2a_delegation(card_url, None, 60, "hello")
    print(repr(found.get("result")), file=told)
    server.should_exit = True
    await serving


asyncio.run(main())
PYTHON
CREWAI_DISABLE_TELEMETRY=true "$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
echo "'Hel lo'" > "$place/expected"
cmp "$place/seen" "$place/expected"
