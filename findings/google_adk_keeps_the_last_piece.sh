#!/bin/sh
# Package:   google-adk 2.13.0 (PyPI), its `RemoteA2aAgent`, at a server of a2a-sdk 1.3.0
# Behaviour: each piece of a streamed artifact is an event of ADK with this piece alone, partial unless it is marked as the
#            last. Sessions keep no partial events. So a session keeps the last piece of an answer that its user has read
#            whole, and nothing if no piece is marked, as A2A allows (`lastChunk` is optional). The next turn, and the other
#            agents of the session, do not know the answer: it is whole in `custom_metadata` alone, which no model reads.
#            `a2a_client_factory=ClientFactory(ClientConfig(streaming=False))` keeps whole answers.
# Output:    streamed, the last piece is marked: read 'Table nine, at eight.', kept 'at eight.'
#            streamed, no piece is marked: read 'Table nine, at eight.', kept ''
#            streaming=False: read 'Table nine, at eight.', kept 'Table nine, at eight.'
# Run:       sh findings/google_adk_keeps_the_last_piece.sh   (needs python3 and PyPI; one or two minutes)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet 'google-adk[a2a]==2.13.0' 'a2a-sdk[http-server]==1.3.0'
cat > "$place/try.py" <<'PYTHON'
import asyncio
import logging
import socket

import httpx
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types
from starlette.applications import Starlette

logging.disable()
PIECES = ("Table ", "nine, ", "at eight.")


class Waiter(AgentExecutor):
    """Answers in pieces; marks the last one unless it is asked for none."""

    async def execute(self, context, queue):
        marks = "unmarked" not in context.get_user_input()
        await queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        for number, piece in enumerate(PIECES):
            await updater.add_artifact(
                [Part(text=piece)],
                artifact_id="answer",
                append=number > 0,
                last_chunk=(number + 1 == len(PIECES)) if marks else None,
            )
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


def read(events):
    """The text in events of the agent, without what it only thinks."""
    parts = [p for e in events if e.author == "waiter" and e.content for p in e.content.parts or []]
    return "".join(part.text for part in parts if part.text and not part.thought)


async def ask(card, text, http, *, streaming):
    """Return what the user reads, and what the session keeps."""
    factory = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming))
    agent = RemoteA2aAgent(name="waiter", agent_card=card, a2a_client_factory=factory)
    runner = InMemoryRunner(agent=agent, app_name="guests")
    whose = {"app_name": "guests", "user_id": "guest"}
    session = await runner.session_service.create_session(**whose)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    answer = runner.run_async(user_id="guest", session_id=session.id, new_message=message)
    events = [event async for event in answer]
    assert not any(event.error_message for event in events), events
    kept = await runner.session_service.get_session(**whose, session_id=session.id)
    return f"read {read(events)!r}, kept {read(kept.events)!r}"


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    card = describe(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    handler = DefaultRequestHandler(
        agent_executor=Waiter(), task_store=InMemoryTaskStore(), agent_card=card
    )
    app = Starlette(routes=create_jsonrpc_routes(handler, "/"))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    serving = asyncio.create_task(server.serve([listener]))
    async with httpx.AsyncClient(trust_env=False) as http:
        for name, text, streaming in (
            ("streamed, the last piece is marked", "book", True),
            ("streamed, no piece is marked", "book, unmarked", True),
            ("streaming=False", "book", False),
        ):
            print(f"{name}: {await ask(card, text, http, streaming=streaming)}", flush=True)
    server.should_exit = True
    await serving


asyncio.run(main())
PYTHON
"$place/venv/bin/python" -W ignore "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(stream.*: read .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
