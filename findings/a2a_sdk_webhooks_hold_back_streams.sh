#!/bin/sh
# Package:   a2a-sdk 1.3.0 with its server (PyPI)
# Behaviour: its server gives an event to the webhooks of a task before it gives it to streams, and waits for their answers.
#            So each streamed piece is late by the time that the slowest receiver takes, and these times add up: with an
#            answer after 0.3 s, the end of five events comes 1.5 s after the agent has ended. A receiver that does not
#            answer costs 5 s an event (the timeout of httpx). A SendMessage that waits for the end is as late. A receiver
#            for such agents should answer first and work later; a client that has a stream should ask for no webhook.
# Output:    without a webhook: agent ends, stream task, stream one, stream two, stream three, stream end
#            with a webhook: agent ends, webhook task, stream task, webhook one, stream one, webhook two, stream two, webhook three, stream three, webhook end, stream end
#            the stream ended 1.5 s or more after the agent
# Run:       sh findings/a2a_sdk_webhooks_hold_back_streams.sh   (needs python3 and PyPI; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet 'a2a-sdk[http-server]==1.3.0' httpx==0.28.1 starlette==1.10.0 uvicorn==0.54.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import socket
import time

import httpx
import uvicorn
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
)
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

SECONDS = 0.3
seen, times = [], []


def note(what):
    seen.append(what)
    times.append(time.monotonic())


def name(event):
    """The piece in an event of an artifact; "task" and "end" for the others."""
    if event.HasField("artifact_update"):
        return event.artifact_update.artifact.parts[0].text
    return "task" if event.HasField("task") else "end"


class Counter(AgentExecutor):
    """Counts to three, and waits for nothing."""

    async def execute(self, context, queue):
        await queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        for word in ("one", "two", "three"):
            await updater.add_artifact([Part(text=word)], artifact_id="count", append=word != "one")
        await updater.complete()
        note("agent ends")

    async def cancel(self, context, queue):
        raise NotImplementedError


async def receive(request):
    """Take an event, and answer after a while."""
    event = ParseDict(await request.json(), StreamResponse())
    await asyncio.sleep(SECONDS)
    note(f"webhook {name(event)}")
    return Response()


def describe(url):
    return AgentCard(
        name="counter",
        description="Counts.",
        version="1",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="count", name="count", description="Counts.", tags=["count"])],
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
        ],
    )


async def ask(client, webhook):
    """Stream an answer; return the seconds between the end of the agent and that of the stream."""
    seen.clear()
    times.clear()
    request = SendMessageRequest(message=new_text_message("count", role=Role.ROLE_USER))
    if webhook:
        request.configuration.task_push_notification_config.url = webhook
    async for event in client.send_message(request):
        note(f"stream {name(event)}")
    return times[-1] - times[seen.index("agent ends")]


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card, webhooks = describe(f"{base}/"), InMemoryPushNotificationConfigStore()
    async with httpx.AsyncClient(trust_env=False) as http:
        handler = DefaultRequestHandler(
            agent_executor=Counter(),
            task_store=InMemoryTaskStore(),
            agent_card=card,
            push_config_store=webhooks,
            push_sender=BasePushNotificationSender(http, webhooks),
        )
        routes = [*create_jsonrpc_routes(handler, "/"), Route("/webhook", receive, methods=["POST"])]
        server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning"))
        serving = asyncio.create_task(server.serve([listener]))
        client = await create_client(card, ClientConfig(httpx_client=http, streaming=True))
        await ask(client, None)
        print("without a webhook:", ", ".join(seen))
        late = await ask(client, f"{base}/webhook")
        print("with a webhook:", ", ".join(seen))
        assert late >= 5 * SECONDS - 0.05, late
        print(f"the stream ended {5 * SECONDS} s or more after the agent")
        server.should_exit = True
        await serving


asyncio.run(main())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(with a webhook: .*\|the stream ended .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
