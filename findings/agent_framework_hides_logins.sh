#!/bin/sh
# Package:   agent-framework-a2a 1.0.0b261022 with agent-framework-core 1.23.0 (PyPI), at a server of a2a-sdk 1.3.0
# Behaviour: an agent that needs a login gets no answer: `run` of its `A2AAgent` returns a response without messages, as a
#            stream too, so that the words and the link of `auth-required` are lost. Questions (`input-required`) arrive.
#            Of an ended task, `run` gives the newest message of the history and not that of the status: what the agent
#            said on its way stands for its answer, and for a failure its user reads the own question. A stream gives the
#            last words of both. Nothing raises. Artifacts arrive by both.
# Output:    asks: run 'Which city?', stream 'Which city?'
#            needs a login: run '', stream ''
#            says what it does, and ends: run 'Looking it up.', stream 'It is booked.'
#            fails: run 'fail', stream 'No table is free.'
#            ends with an artifact: run 'Table nine.', stream 'Table nine.'
# Run:       sh findings/agent_framework_hides_logins.sh   (needs python3 and PyPI; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet agent-framework-a2a==1.0.0b261022 agent-framework-core==1.23.0 \
    'a2a-sdk[http-server]==1.3.0' httpx==0.28.1 starlette==1.10.0 uvicorn==0.54.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import logging
import socket

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from agent_framework_a2a import A2AAgent
from starlette.applications import Starlette

logging.disable()


class Waiter(AgentExecutor):
    """Does what the one word of its user says."""

    async def execute(self, context, queue):
        await queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)

        def say(text):
            return updater.new_agent_message([Part(text=text)])

        match context.get_user_input():
            case "ask":
                await updater.requires_input(say("Which city?"))
            case "login":
                await updater.requires_auth(say("Log in at https://login.example."))
            case "chat":
                await updater.start_work(say("Looking it up."))
                await updater.complete(say("It is booked."))
            case "fail":
                await updater.failed(say("No table is free."))
            case "artifact":
                await updater.add_artifact([Part(text="Table nine.")], last_chunk=True)
                await updater.complete()

    async def cancel(self, context, queue):
        raise NotImplementedError


def describe(url):
    return AgentCard(
        name="waiter",
        description="Books tables.",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="book", name="book", description="Books.", tags=["book"])],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
    )


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    card = describe(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    handler = DefaultRequestHandler(
        agent_executor=Waiter(), task_store=InMemoryTaskStore(), agent_card=card
    )
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    serving = asyncio.create_task(server.serve([listener]))
    async with A2AAgent(agent_card=card) as agent:
        for word, name in (
            ("ask", "asks"),
            ("login", "needs a login"),
            ("chat", "says what it does, and ends"),
            ("fail", "fails"),
            ("artifact", "ends with an artifact"),
        ):
            answer = await agent.run(word)
            streamed = await agent.run(word, stream=True).get_final_response()
            print(f"{name}: run {answer.text!r}, stream {streamed.text!r}", flush=True)
    server.should_exit = True
    await serving


asyncio.run(main())
PYTHON
"$place/venv/bin/python" -W ignore "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(.*: run .*, stream .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
