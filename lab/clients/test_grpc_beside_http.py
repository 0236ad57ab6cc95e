"""One task over every way in: the published client over gRPC, server-sent events, HTTP+JSON, and the admin."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import httpx
import pytest
from a2a.types import (
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils import errors

from lab.server.test_from_nothing import make_stack
from tests import ROOT, backend
from tests.journeys.hosts import APPS, embedded, with_grpc
from tests.journeys.sdk import Official, last_state, official, said, word
from tests.journeys.waiting import PATIENCE
from tests.support.ports import free_port
from tests.support.processes import python

S = TaskState
MANAGE = ROOT / "manage.py"
PASSWORD = "correct horse"
ADMIN = ("--username", "admin", "--email", "admin@example.com")
CREATE_ADMIN = ("-m", "django", "createsuperuser", "--noinput", *ADMIN)


@dataclass(frozen=True)
class Ways:
    """A host with gRPC: `manage.py up` on SQLite, `make stack` on the stack."""

    url: str
    grpc: str


@pytest.fixture(scope="module")
def ways(emptied: None) -> Iterator[Ways]:
    """The host of this backend, as people start it."""
    port = free_port()
    environ = {**with_grpc(port), "ADMIN_PASSWORD": PASSWORD}
    begun = stacked if backend.backend() == backend.STACK else up
    with begun(environ) as url:
        yield Ways(url, f"127.0.0.1:{port}")


@contextmanager
def up(environ: Mapping[str, str]) -> Iterator[str]:
    """One process, and its URL."""
    with embedded(environ) as web:
        yield web.url


@contextmanager
def stacked(environ: Mapping[str, str]) -> Iterator[str]:
    """Web with gRPC, worker, pusher and beat, and the URL of web."""
    with python(CREATE_ADMIN, {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}) as made:
        assert made.process.wait(PATIENCE) == 0, made.log
    with (
        TemporaryDirectory() as folder,
        make_stack({**backend.children(), **APPS, **environ, "VAR_DIR": folder}) as (_, url),
    ):
        yield url


@pytest.fixture
async def client(ways: Ways) -> AsyncIterator[Official]:
    """The published client over gRPC."""
    async with official(ways.url, "GRPC") as made:
        yield made


@pytest.fixture(params=["1.0", "0.3"])
async def either(ways: Ways, request: pytest.FixtureRequest) -> AsyncIterator[Official]:
    """The published client over either package."""
    async with official(ways.url, "GRPC", version=request.param) as made:
        yield made


class TestTheOfficialClientOfEitherPackage:
    async def test_sends_and_reads(self, either: Official) -> None:
        text = word()
        task = await either.send(f"echo {text}")
        assert said(*task.artifacts) == text
        assert await either.get(task.id) == task

    async def test_streams_chunks_in_order(self, either: Official) -> None:
        events = await either.stream("chunks 20")
        updates = [e.artifact_update for e in events if e.HasField("artifact_update")]
        assert [update.append for update in updates] == [False] + [True] * 19
        assert last_state(events) == S.TASK_STATE_COMPLETED

    async def test_is_asked_and_answers(self, either: Official) -> None:
        asked = await either.send("ask Who?")
        assert asked.status.state == S.TASK_STATE_INPUT_REQUIRED
        answer = word()
        done = await either.send(answer, task=asked.id)
        assert answer in said(*done.artifacts)

    async def test_follows_and_cancels(self, either: Official) -> None:
        task = await either.start("slow 60")
        stream = either.subscription(task.id)
        events = [await anext(stream)]
        assert (await either.cancel(task.id)).status.state == S.TASK_STATE_CANCELED
        events += [event async for event in stream]
        assert last_state(events) == S.TASK_STATE_CANCELED

    async def test_knows_errors_by_their_names(self, either: Official) -> None:
        with pytest.raises(errors.TaskNotFoundError):
            await either.get("unknown")
        task = await either.send("echo x")
        with pytest.raises(errors.TaskNotCancelableError):
            await either.cancel(task.id)
        # 1.0 calls it unsupported, 0.3 a wrong parameter.
        with pytest.raises((errors.UnsupportedOperationError, errors.InvalidParamsError)):
            await either.send("echo y", task=task.id)


class TestTheOfficialClient:
    async def test_lists_in_pages(self, client: Official) -> None:
        context = (await client.send("echo 0")).context_id
        await asyncio.gather(*(client.send("echo 1", context=context) for _ in range(2)))
        page = await client.list(context_id=context, page_size=2)
        assert (len(page.tasks), page.total_size, bool(page.next_page_token)) == (2, 3, True)

    async def test_registers_webhooks(self, client: Official) -> None:
        task = await client.start("slow 60")
        config = TaskPushNotificationConfig(
            task_id=task.id, id="c", url="https://hooks.example.com/"
        )
        made = await client.plain.create_task_push_notification_config(config)
        named = GetTaskPushNotificationConfigRequest(task_id=task.id, id="c")
        assert await client.plain.get_task_push_notification_config(named) == made
        gone = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="c")
        await client.plain.delete_task_push_notification_config(gone)
        with pytest.raises(errors.TaskNotFoundError):
            await client.plain.get_task_push_notification_config(named)
        await client.cancel(task.id)

    async def test_is_told_which_parameter_is_wrong(self, client: Official) -> None:
        with pytest.raises(errors.InvalidParamsError):
            await client.list(page_size=-1)


async def streamed(http: httpx.AsyncClient, task: str) -> AsyncIterator[dict[str, object]]:
    """The items of a subscription over server-sent events."""
    async with http.stream("POST", f"/agents/demo/a2a/1.0/tasks/{task}:subscribe") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def test_a_task_made_by_grpc_is_streamed_by_sse_cancelled_over_http_and_listed_in_the_admin(
    ways: Ways, client: Official
) -> None:
    task = await client.start("slow 60")
    async with httpx.AsyncClient(base_url=ways.url, timeout=PATIENCE, trust_env=False) as http:
        items = streamed(http, task.id)
        first = await anext(items)
        assert first["task"]["id"] == task.id  # type: ignore[index]
        canceled = await http.post(f"/agents/demo/a2a/1.0/tasks/{task.id}:cancel")
        assert canceled.json()["status"]["state"] == "TASK_STATE_CANCELED"
        *_, last = [item async for item in items]
        assert "TASK_STATE_CANCELED" in json.dumps(last)
    assert (await client.get(task.id)).status.state == S.TASK_STATE_CANCELED
    assert task.id in await listed(ways)


async def listed(ways: Ways) -> str:
    """The tasks as the admin lists them, for its first user."""
    async with httpx.AsyncClient(
        base_url=ways.url, timeout=PATIENCE, trust_env=False, follow_redirects=True
    ) as http:
        await http.get("/admin/login/")
        form = {
            "username": "admin",
            "password": PASSWORD,
            "csrfmiddlewaretoken": http.cookies["csrftoken"],
        }
        await http.post("/admin/login/", data=form)
        return (await http.get("/admin/a2a_tasks/task/")).text
