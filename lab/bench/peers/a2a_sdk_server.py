"""Peer: a2a-sdk 1.x on uvicorn with DatabaseTaskStore on PostgreSQL. `a2a_sdk_server.py PORT`, env DB.

Its agent emits the least the API allows: Task(WORKING), the artifact, COMPLETED.
"""

import asyncio
import os
import sys

import httpx
import uvicorn
import uvloop
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    DatabaseTaskStore,
    InMemoryPushNotificationConfigStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

PORT = int(sys.argv[1])


def now():
    """The current time as protobuf."""
    stamp = Timestamp()
    stamp.GetCurrentTime()
    return stamp


class Agent(AgentExecutor):
    """`echo X`, `chunks N [DELAY]`, `sleep S`, `message X`."""

    async def cancel(self, context, event_queue):
        """Cancel at once."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def execute(self, context, event_queue):
        """Obey the first word."""
        verb, _, arg = context.get_user_input().partition(" ")
        if verb == "message":
            await event_queue.enqueue_event(new_text_message(arg, role=Role.ROLE_AGENT))
            return
        status = TaskStatus(state=TaskState.TASK_STATE_WORKING, timestamp=now())
        task = Task(
            id=context.task_id,
            context_id=context.context_id,
            status=status,
            history=[context.message],
        )
        await event_queue.enqueue_event(task)
        update = TaskUpdater(event_queue, context.task_id, context.context_id)
        if verb == "chunks":
            await self.chunks(update, *arg.split())
        else:
            if verb == "sleep":
                await asyncio.sleep(float(arg))
            await update.add_artifact([Part(text=arg)], artifact_id="a1")
        await update.complete()

    async def chunks(self, update, count, delay="0"):
        """One artifact in `count` appended chunks, after the delay."""
        await asyncio.sleep(float(delay))
        for i in range(int(count)):
            part = Part(text=f"#{i};".ljust(32, "."))
            last = i == int(count) - 1
            await update.add_artifact([part], artifact_id="a1", append=i > 0, last_chunk=last)


def make_card():
    """The smallest card that streams."""
    return AgentCard(
        name="peer",
        description="bench peer",
        version="1",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["s"])],
        supported_interfaces=[
            AgentInterface(
                protocol_binding="JSONRPC", protocol_version="1.0", url=f"http://127.0.0.1:{PORT}/"
            )
        ],
    )


async def main():
    """Serve until SIGTERM."""
    store = DatabaseTaskStore(create_async_engine(os.environ["DB"], pool_size=32, max_overflow=0))
    await store.initialize()
    configs = InMemoryPushNotificationConfigStore()
    card = make_card()
    handler = DefaultRequestHandler(
        agent_executor=Agent(),
        task_store=store,
        agent_card=card,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(httpx.AsyncClient(), configs),
    )
    app = Starlette(routes=create_jsonrpc_routes(handler, "/") + create_agent_card_routes(card))
    config = uvicorn.Config(
        app, host="127.0.0.1", port=PORT, log_level="error", access_log=False, backlog=2048,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    uvloop.run(main())
