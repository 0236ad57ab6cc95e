"""The four operations, and webhooks that come with messages, as bindings call them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.db.models import Model
from pytest_django import Settings

from a2a_project.operations import TABLE
from a2a_push.models import PushConfig as Row
from a2a_push.store import configs
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.agents.cards import card_of
from a2a_tasks.caller import Caller
from a2a_tasks.models import Run, Task
from a2a_tasks.operations.capabilities import require_capability
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import (
    InvalidParams,
    PushNotificationNotSupported,
    TaskNotFound,
)
from a2a_tasks.protocol.requests import (
    CreatePushConfigRequest,
    DeletePushConfigRequest,
    GetPushConfigRequest,
    ListPushConfigsRequest,
    Request,
)
from a2a_tasks.protocol.values import PushConfig
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting, listened
from tests.support.outbound.canary import watched
from tests.support.push.configs import SECRETS, URL, config, tells_none

pytestmark = pytest.mark.django_db

CREATE = "CreateTaskPushNotificationConfig"
GET = "GetTaskPushNotificationConfig"
LIST = "ListTaskPushNotificationConfigs"
DELETE = "DeleteTaskPushNotificationConfig"
#: What any agent could be asked, of a task with this id.
ASKED: dict[str, Any] = {
    CREATE: lambda task: CreatePushConfigRequest(config=config(task_id=task)),
    GET: lambda task: GetPushConfigRequest(task_id=task, id="c-1"),
    LIST: lambda task: ListPushConfigsRequest(task_id=task),
    DELETE: lambda task: DeletePushConfigRequest(task_id=task, id="c-1"),
}


@pytest.fixture(autouse=True)
async def local(settings: Settings) -> AsyncIterator[None]:
    """Runs are this process's own."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    async with hosting():
        yield


class Scene:
    """An agent whose turns tell how many webhooks their task had when they began."""

    seen: list[int]

    def __init__(self) -> None:
        self.seen = []

    async def run(self, turn: Turn) -> AsyncIterator[Any]:
        """Look, and do as the text says."""
        mine = Row.objects.filter(task__public_id=turn.task_id)
        self.seen.append(await run_in_thread(mine.count))
        yield turn.ask("what?") if turn.text == "ask" else "done"


@pytest.fixture
def scene() -> Scene:
    """What the agent has seen."""
    return Scene()


@pytest.fixture
def agent(scene: Scene) -> Iterator[Agent]:
    """An agent that takes webhooks."""
    with playing(scene.run, push_notifications=True) as found:
        yield found


@pytest.fixture
def alice(agent: Agent) -> Client:
    """Its client."""
    return Client(agent)


async def ask(operation: str, client: Client, request: Request, **circumstances: Any) -> Any:
    """Do an operation of the table, as a binding does."""
    require_capability(client.agent, TABLE[operation].operation.needs)
    return await TABLE[operation](request, client.call(**circumstances))


async def create(client: Client, task: str, id_: str = "c-1", **members: Any) -> PushConfig:
    """Register a webhook."""
    dialect = members.pop("spoken", "v10")
    request = CreatePushConfigRequest(config=config(id_, task_id=task, **members))
    made = await ask(CREATE, client, request, dialect=dialect)
    assert isinstance(made, PushConfig)
    return made


async def get(client: Client, task: str, id_: str = "") -> PushConfig:
    """Read a webhook."""
    found = await ask(GET, client, GetPushConfigRequest(task_id=task, id=id_))
    assert isinstance(found, PushConfig)
    return found


async def listed(client: Client, task: str, **asked: Any) -> list[PushConfig]:
    """Read a page of webhooks."""
    page = await ask(LIST, client, ListPushConfigsRequest(task_id=task, **asked))
    assert isinstance(page, values.PushConfigPage)
    return page.configs


async def kept(task: values.Task) -> list[PushConfig]:
    """What is stored of a task's webhooks, with their secrets."""
    row = await run_in_thread(Task.objects.get, public_id=task.id)
    return [found for _, found in await run_in_thread(configs.with_secrets, row.pk)]


def rows_of(model: type[Model]) -> list[dict[str, Any]]:
    """Everything in a table. For a thread with a connection."""
    return list(model._default_manager.values())


class TestAnAgentThatTakesNone:
    @pytest.mark.parametrize("operation", ASKED)
    async def test_refuses_the_four_whether_or_not_there_is_a_task(self, operation: str) -> None:
        """R-080."""
        with playing(Scene().run) as bare:
            client = Client(bare)
            task = await client.send("hello")
            for id_ in (task.id, "unknown"):
                with pytest.raises(PushNotificationNotSupported):
                    await ask(operation, client, ASKED[operation](id_))

    async def test_refuses_messages_with_one_and_keeps_nothing(self) -> None:
        """R-080."""
        with playing(Scene().run) as bare:
            for url in (URL, "not a URL"):
                with pytest.raises(PushNotificationNotSupported):
                    await Client(bare).send("hello", push_config=PushConfig(url=url))
        assert not await run_in_thread(Task.objects.exists)

    async def test_says_so_in_its_card(self, agent: Agent) -> None:
        with playing(Scene().run) as bare:
            assert card_of(bare, "")["capabilities"]["pushNotifications"] is False
        assert card_of(agent, "")["capabilities"]["pushNotifications"] is True


class TestTheFour:
    async def test_create_get_list_and_delete(self, alice: Client) -> None:
        """R-060 to R-064."""
        task = await alice.send("ask")
        made = await create(alice, task.id)
        assert (made.id, made.task_id, made.url) == ("c-1", task.id, URL)
        assert await get(alice, task.id, "c-1") == made
        assert await listed(alice, task.id) == [made]
        for _ in range(2):
            request = DeletePushConfigRequest(task_id=task.id, id="c-1")
            assert await ask(DELETE, alice, request) is None
        assert await listed(alice, task.id) == []
        with pytest.raises(TaskNotFound):
            await get(alice, task.id, "c-1")

    @pytest.mark.parametrize("operation", ASKED)
    async def test_anothers_task_is_no_task(self, operation: str, alice: Client) -> None:
        task = await alice.send("ask")
        await create(alice, task.id)
        bob = Client(alice.agent, Caller(principal="user:bob"))
        for id_ in (task.id, "unknown", "un\x00known"):
            with pytest.raises(TaskNotFound):
                await ask(operation, bob, ASKED[operation](id_))
        assert len(await listed(alice, task.id)) == 1

    async def test_the_tenant_is_part_of_whose_it_is(self, alice: Client) -> None:
        task = await alice.send("ask", tenant="north")
        request = CreatePushConfigRequest(config=config(task_id=task.id), tenant="north")
        made = await ask(CREATE, alice, request)
        assert made.tenant == "north"
        (found,) = await listed(alice, task.id, tenant="north")
        assert found == made
        for tenant in ("", "south"):
            with pytest.raises(TaskNotFound):
                await listed(alice, task.id, tenant=tenant)

    async def test_pages(self, alice: Client) -> None:
        """R-063."""
        task = await alice.send("ask")
        for name in ("c-1", "c-2", "c-3"):
            await create(alice, task.id, name)
        first = await ask(LIST, alice, ListPushConfigsRequest(task_id=task.id, page_size=2))
        assert first.next_page_token
        rest = await listed(alice, task.id, page_token=first.next_page_token)
        assert [found.id for found in rest] == ["c-3"]

    async def test_one_is_cleared_as_often_as_asked(self, alice: Client) -> None:
        """As 0.1 does by setting null."""
        task = await alice.send("ask")
        await create(alice, task.id, "", dialect="v01")
        await create(alice, task.id, "c-2")
        for _ in range(2):
            nothing = PushConfig(url="", id=task.id, task_id=task.id)
            cleared = CreatePushConfigRequest(config=nothing, clears=True)
            assert await ask(CREATE, alice, cleared) is None
            assert [found.id for found in await listed(alice, task.id)] == ["c-2"]

    async def test_two_at_once_both_succeed(self, alice: Client) -> None:
        task = await alice.send("ask")
        await asyncio.gather(*(create(alice, task.id, token=str(n)) for n in range(8)))
        assert len(await listed(alice, task.id)) == 1

    async def test_the_most_is_said(self, alice: Client, settings: Settings) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 1
        task = await alice.send("ask")
        await create(alice, task.id)
        with pytest.raises(InvalidParams) as caught:
            await create(alice, task.id, "c-2")
        assert caught.value.violations[0][0] == "id"


class TestAnIdTheServerAssigns:
    @pytest.mark.parametrize("dialect", ["s0", "v00", "v01", "v02"])
    async def test_is_the_tasks_in_the_old_dialects(self, dialect: str, alice: Client) -> None:
        """Dialects §4.7."""
        task = await alice.send("ask")
        for url in (URL, "https://b.example"):
            made = await create(alice, task.id, "", dialect="", spoken=dialect, url=url)
            assert (made.id, made.dialect) == (task.id, dialect)
        (found,) = await listed(alice, task.id)
        assert found.url == "https://b.example"

    async def test_is_always_the_same_in_0_3(self, alice: Client) -> None:
        """Decision 9."""
        task = await alice.send("ask")
        for url in (URL, "https://b.example"):
            made = await create(alice, task.id, "", dialect="", spoken="v03", url=url)
            assert (made.id, made.dialect) == ("default", "v03")
        (found,) = await listed(alice, task.id)
        assert found.url == "https://b.example"

    @pytest.mark.parametrize("dialect", ["dr", "v10"])
    async def test_is_a_new_one_in_the_others(self, dialect: str, alice: Client) -> None:
        task = await alice.send("ask")
        made = [await create(alice, task.id, "", dialect="", spoken=dialect) for _ in range(2)]
        assert len({uuid.UUID(each.id) for each in made}) == 2
        assert await listed(alice, task.id) == made

    async def test_is_not_needed_to_get_the_only_one(self, alice: Client) -> None:
        task = await alice.send("ask")
        made = await create(alice, task.id, "")
        assert await get(alice, task.id) == made

    async def test_is_found_before_older_ones(self, alice: Client) -> None:
        task = await alice.send("ask")
        await create(alice, task.id, "c-1")
        await create(alice, task.id, "", dialect="v01")
        assert (await get(alice, task.id)).id == task.id

    async def test_is_that_of_the_dialect_that_made_the_config(self, alice: Client) -> None:
        task = await alice.send("ask")
        made = await create(alice, task.id, "", dialect="v01", spoken="v10")
        assert (made.id, made.dialect) == (task.id, "v01")


GOOD = [
    "https://example.com",
    "https://example.com:8080/a/b?c=d#e",
    "HTTPS://EXAMPLE.COM/",
    "https://bücher.example/ü",
    "https://example.com/@user",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]:8443/x",
    "https://no.such.name.example/",
    "https://example.com/".ljust(2048, "x"),
]
BAD = [
    "",
    "example.com",
    "//example.com/path",
    "http://example.com",
    "ftp://example.com",
    "javascript:alert(1)",
    "https:///path",
    "https://user:password@example.com",
    "https://example.com:22",
    "https://example.com:65536",
    "https://localhost/",
    "https://redis/",
    "https://metadata.google.internal/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://169.254.169.254/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://example.com/a b",
    "https://example.com/\x00",
    "https://example.com\\@evil.example",
    "https://example.com/" + "x" * 2048,
]


class TestAUrl:
    """All the ways in which one may be wrong: tests/unit/outbound."""

    @pytest.mark.parametrize("url", GOOD)
    async def test_is_taken_as_it_is_and_no_name_is_asked_for(
        self, url: str, alice: Client
    ) -> None:
        task = await alice.send("ask")
        with watched() as heard:
            assert (await create(alice, task.id, url=url)).url == url
        assert [event for event, _ in heard if event == "socket.getaddrinfo"] == []

    @pytest.mark.parametrize("url", BAD)
    async def test_that_may_not_be_called_is_refused(self, url: str, alice: Client) -> None:
        task = await alice.send("ask")
        with pytest.raises(InvalidParams) as caught:
            await create(alice, task.id, url=url)
        assert [path for path, _ in caught.value.violations] == ["url"]
        assert await listed(alice, task.id) == []

    async def test_is_what_the_operator_allows(self, alice: Client, settings: Settings) -> None:
        task = await alice.send("ask")
        settings.A2A_WEBHOOK_ALLOW_PRIVATE = True
        await create(alice, task.id, url="http://localhost:8080/")
        settings.A2A_WEBHOOK_ALLOW_NETWORKS = "10.0.0.0/8,hooks.corp"
        settings.A2A_WEBHOOK_ALLOW_HTTP = True
        for url in ("http://10.1.2.3/", "http://hooks.corp/", "http://example.com/"):
            await create(alice, task.id, url=url)
        settings.A2A_WEBHOOK_PORTS = "443"
        with pytest.raises(InvalidParams):
            await create(alice, task.id, url="https://example.com:8443/")


class TestWhatGoesIntoHeaders:
    @pytest.mark.parametrize(
        ("members", "path"),
        [
            ({"token": "a\r\nX: y"}, "token"),
            ({"token": "a\x00"}, "token"),
            ({"credentials": "a\nb"}, "authentication.credentials"),
            ({"schemes": ("Bearer", "a b")}, "authentication.scheme"),
            ({"schemes": ("",)}, "authentication.scheme"),
            ({"schemes": ("Bearer\r\nX:",)}, "authentication.scheme"),
            ({"headers": {"X": "a\r\nY: b"}}, "headers"),
            ({"headers": {"X Y": "a"}}, "headers"),
            ({"headers": {"": "a"}}, "headers"),
            ({"headers": {"X:": "a"}}, "headers"),
            ({"token": "x" * 20_000}, "authentication"),
            ({"headers": {f"X-{n}": "x" * 100 for n in range(200)}}, "authentication"),
            ({"id_": "x" * 257}, "id"),
            ({"id_": "a\x00"}, "id"),
        ],
    )
    async def test_cannot_begin_another_one(
        self, members: dict[str, Any], path: str, alice: Client
    ) -> None:
        """RFC 9110 §5.5."""
        task = await alice.send("ask")
        with pytest.raises(InvalidParams) as caught:
            await create(alice, task.id, **members)
        assert [found for found, _ in caught.value.violations] == [path]
        assert await listed(alice, task.id) == []

    async def test_everything_wrong_is_named_at_once(self, alice: Client) -> None:
        with pytest.raises(InvalidParams) as caught:
            await create(alice, "t", url="x", token="\n", headers={"": "\n"})
        paths = [path for path, _ in caught.value.violations]
        assert paths == ["url", "token", "headers", "headers"]


class TestAWebhookWithAMessage:
    async def test_is_there_before_the_agent_runs(self, alice: Client, scene: Scene) -> None:
        """Dialects §7.2: so that the first transition is told."""
        task = await alice.send("hello", push_config=config("", task_id=""))
        assert scene.seen == [1]
        (found,) = await kept(task)
        assert uuid.UUID(found.id).version == 4
        assert values.replace(found, id="c-1") == config(task_id=task.id)

    async def test_comes_with_a_stream_too(self, alice: Client, scene: Scene) -> None:
        await listened(await alice.stream("hello", push_config=config("")))
        assert scene.seen == [1]

    async def test_comes_with_a_message_to_a_task(self, alice: Client, scene: Scene) -> None:
        task = await alice.send("ask")
        await alice.send("hello", task_id=task.id, push_config=config("c-2", task_id="ignored"))
        assert scene.seen == [0, 1]
        (found,) = await kept(task)
        assert (found.id, found.task_id) == ("c-2", task.id)

    @pytest.mark.parametrize("dialect", ["s0", "v00", "v01", "v02"])
    async def test_is_named_as_its_task_in_the_old_dialects(
        self, dialect: str, alice: Client
    ) -> None:
        request = alice.request("hello", push_config=PushConfig(url=URL))
        task = await TABLE["SendMessage"](request, alice.call(dialect=dialect))
        (found,) = await kept(task)
        assert (found.id, found.dialect) == (task.id, dialect)

    async def test_that_cannot_be_called_leaves_no_task(self, alice: Client) -> None:
        with pytest.raises(InvalidParams) as caught:
            await alice.send("hello", push_config=PushConfig(url="ftp://x", path="there"))
        assert caught.value.violations[0][0] == "there.url"
        assert not await run_in_thread(Task.objects.exists)

    async def test_too_many_leave_the_task_as_it_was(
        self, alice: Client, settings: Settings
    ) -> None:
        settings.A2A_MAX_PUSH_CONFIGS = 1
        task = await alice.send("ask", push_config=config())
        with pytest.raises(InvalidParams) as caught:
            await alice.send("hello", task_id=task.id, push_config=config("c-2", path="there"))
        assert caught.value.violations[0][0] == "there"
        assert await alice.get(task.id) == task

    async def test_of_a_foreign_task_goes_nowhere(self, alice: Client) -> None:
        task = await alice.send("ask")
        bob = Client(alice.agent, Caller(principal="user:bob"))
        with pytest.raises(TaskNotFound):
            await bob.send("hello", task_id=task.id, push_config=config())
        assert await kept(task) == []

    async def test_many_at_once_each_have_their_own(self, alice: Client) -> None:
        sends = (alice.send("hello", push_config=config() if n % 2 else None) for n in range(12))
        for n, task in enumerate(await asyncio.gather(*sends)):
            assert len(await kept(task)) == n % 2


class TestSecrets:
    async def test_are_in_no_answer(self, alice: Client) -> None:
        task = await alice.send("ask", push_config=config("c-0"))
        answers = [
            await create(alice, task.id),
            await get(alice, task.id, "c-1"),
            await get(alice, task.id),
            *await listed(alice, task.id),
        ]
        for answer in answers:
            tells_none(answer)
            assert (answer.token, answer.credentials, answer.headers) == ("", "", {})
            assert answer.schemes == ("Bearer", "Basic")
        tells_none(await alice.get(task.id))

    async def test_are_in_no_error_and_no_log(
        self, alice: Client, caplog: pytest.LogCaptureFixture, settings: Settings
    ) -> None:
        caplog.set_level(logging.DEBUG)
        settings.A2A_MAX_PUSH_CONFIGS = 1
        secrets = {"token": f"{SECRETS[0]}\n", "credentials": f"{SECRETS[1]}\n"}
        task = await alice.send("ask", push_config=config())
        for task_id, id_, members in (
            (task.id, "c-2", {}),
            (task.id, "c-1", {**secrets, "headers": {SECRETS[2]: "\n"}}),
            (task.id, "c-1", {"schemes": (" ".join(SECRETS),)}),
            ("unknown", "c-1", {}),
        ):
            with pytest.raises((InvalidParams, TaskNotFound)) as caught:
                await create(alice, task_id, id_, **members)
            tells_none(caught.value)
            tells_none(caught.value.details)
        tells_none(caplog.text)

    async def test_are_in_no_table_to_be_read(self, alice: Client) -> None:
        await alice.send("ask", push_config=config())
        for model in (Task, Run, Row):
            tells_none(await run_in_thread(rows_of, model))
        tells_none(await run_in_thread(Row.objects.get))
