"""Other people's objects do not exist: each answer about one is that about nothing, byte for byte and query for query."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from allpairspy import AllPairs

from a2a_tasks.access.api_keys import issue, principal_of
from a2a_tasks.agents import Agent, Turn
from a2a_tasks.caller import Caller
from a2a_tasks.models import Context, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store.accept import accept
from a2a_tasks.store.cancel import cancel
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.idempotency import IdempotencyKey, remember
from tests.integration.access.statements import statements
from tests.integration.access.test_on_the_wire import bearing
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client, Response
from tests.support.bindings.peers import PEERS, Peer, message
from tests.support.store.world import new

pytestmark = pytest.mark.usefixtures("host")

WEBHOOK = {"url": "https://hooks.example.com/a2a"}
CONFIG = "TaskPushNotificationConfig"


@dataclass(frozen=True)
class Question:
    """Something to ask of the object that is somebody else's, or nobody's."""

    operation: str
    params: dict[str, Any]
    headers: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return "-".join([self.operation, *self.params, *(name for name, _ in self.headers)])


#: All of these name the task `theirs`, or the context `theirs`, and fail, or find nothing.
QUESTIONS = [
    Question("GetTask", {"id": "theirs"}),
    Question("GetTask", {"id": "theirs", "historyLength": 0}),
    Question("GetTask", {"id": "theirs", "tenant": "acme"}),
    Question("CancelTask", {"id": "theirs"}),
    Question("SubscribeToTask", {"id": "theirs"}),
    Question("SubscribeToTask", {"id": "theirs"}, (("last-event-id", "1"),)),
    Question("SendMessage", message("echo x", messageId="m", taskId="theirs")),
    Question("SendMessage", message("echo x", messageId="m", taskId="theirs", contextId="theirs")),
    Question(
        "SendMessage",
        message("echo x", messageId="m", taskId="theirs"),
        (("idempotency-key", "theirs"),),
    ),
    Question("SendStreamingMessage", message("echo x", messageId="m", taskId="theirs")),
    Question(
        "SendMessage",
        {
            **message("echo x", messageId="m", taskId="theirs"),
            "configuration": {"taskPushNotificationConfig": WEBHOOK},
        },
    ),
    Question("ListTasks", {"contextId": "theirs"}),
    Question("ListTasks", {"contextId": "theirs", "status": "TASK_STATE_COMPLETED"}),
    Question(f"Create{CONFIG}", {"taskId": "theirs", "id": "c", **WEBHOOK}),
    Question(f"Get{CONFIG}", {"taskId": "theirs", "id": "c"}),
    Question(f"List{CONFIG}s", {"taskId": "theirs"}),
    Question(f"Delete{CONFIG}", {"taskId": "theirs", "id": "c"}),
]


async def told(turn: Turn) -> AsyncIterator[Any]:
    yield f"{len(await turn.references)} references"


@pytest.fixture(params=["own", "tenant"])
def agent(request: pytest.FixtureRequest, settings: Any) -> Iterator[Agent]:
    """An agent with everything that can be asked for, under either policy."""
    settings.A2A_POLL_SECONDS = 3600.0  # nobody but the requests says anything to the database
    with playing(told, push_notifications=True, visibility=request.param) as made:
        yield made


async def known(tenant: str) -> tuple[dict[str, str], Caller]:
    """Credentials, and whose they are."""
    made = await run_in_thread(issue, "test", tenant=tenant)
    caller = Caller(principal=principal_of(made.row), tenant=tenant)
    return {"x-api-key": made.key}, caller


@dataclass
class Bob:
    """Who asks, and how to make what is not his."""

    peer: Peer
    agent: Agent
    alice: Caller
    me: Caller

    async def alices(self, task: str, *, ended: bool = False, context: str = "theirs") -> None:
        """A task of another tenant, under an idempotency key, in a context."""
        scope = self.alice.scope(self.agent.slug, shared=self.agent.visibility == "tenant")
        key = IdempotencyKey(self.alice.own(self.agent.slug), f"key/{task}", "f")
        await run_in_thread(
            accept,
            new(
                task,
                scope=scope,
                principal=self.alice.principal,
                context_id=context,
                held=True,
                companions=(remember(key),),
            ),
        )
        if ended:
            await run_in_thread(cancel, scope, task)

    async def ask(self, question: Question) -> tuple[Response, list[str]]:
        """The answer, and what was said to the database for it."""
        with statements() as said:
            answer = await self.peer.ask(
                question.operation, question.params, dict(question.headers)
            )
        return answer, said


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
async def bob(request: pytest.FixtureRequest, agent: Agent) -> Bob:
    """Bob of one tenant, whose credentials are known already, and Alice of another."""
    headers, me = await known("acme")
    _, alice = await known("umbrella")
    peer: Peer = request.param(Client(bearing(headers), f"/agents/{agent.slug}"))
    await peer.send()  # the runner of this process has begun, and has looked for others' runs
    return Bob(peer, agent, alice, me)


#: Who asks, of an agent of either policy, and what, of a task under way or ended.
AXES: list[list[Any]] = [PEERS, ["own", "tenant"], QUESTIONS, [False, True]]


def cases() -> Iterator[Any]:
    """Every case; `make test` has those in which every two values meet."""
    chosen = [list(case) for case in AllPairs(AXES)]
    for case in map(list, itertools.product(*AXES)):
        peer, visibility, question, ended = case
        name = f"{peer.name}-{visibility}-{question}-{'ended' if ended else 'under-way'}"
        marks = () if case in chosen else (pytest.mark.thorough,)
        yield pytest.param(*case, id=name, marks=marks)


@pytest.mark.parametrize(
    ("bob", "agent", "question", "ended"), list(cases()), indirect=["bob", "agent"]
)
async def test_what_is_somebody_elses_is_missing(bob: Bob, question: Question, ended: bool) -> None:
    missing, looked = await bob.ask(question)
    await bob.alices("theirs", ended=ended)
    foreign, looked_again = await bob.ask(question)
    assert foreign == missing
    assert looked_again == looked
    assert looked
    task = await run_in_thread(Task.objects.get, public_id="theirs")
    assert task.state == (TaskState.CANCELED if ended else TaskState.SUBMITTED)
    assert task.last_event == 1 + ended


def anonymised(answer: Response) -> str:
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", answer.body.decode())
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "AT", text)


@pytest.mark.in_turn("bob", share=2)
class TestAMessage:
    """That begins something of its own, and names what may be somebody else's."""

    async def both(self, bob: Bob, params: dict[str, Any], **headers: str) -> list[str]:
        """The answers, without and with what is named."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        missing = await bob.peer.ask("SendMessage", params, given)
        await run_in_thread(Task.objects.all().delete)
        await run_in_thread(Context.objects.all().delete)
        await bob.alices("theirs")
        foreign = await bob.peer.ask("SendMessage", params, given)
        assert (missing.status, missing.headers[0]) == (foreign.status, foreign.headers[0])
        assert missing.status == 200
        return [anonymised(missing), anonymised(foreign)]

    async def test_may_have_the_context_id_of_another(self, bob: Bob) -> None:
        missing, foreign = await self.both(bob, message(messageId="m", contextId="theirs"))
        assert missing == foreign
        assert '"theirs"' in foreign

    async def test_learns_nothing_from_references(self, bob: Bob) -> None:
        params = message(messageId="m", referenceTaskIds=["theirs"])
        missing, foreign = await self.both(bob, params)
        assert missing == foreign
        assert "0 references" in foreign

    async def test_may_have_the_idempotency_key_of_another(self, bob: Bob) -> None:
        missing, foreign = await self.both(bob, message(messageId="m"), idempotency_key="theirs")
        assert missing == foreign

    async def test_may_give_its_task_the_id_of_another(self, bob: Bob) -> None:
        """Clients of 0.1 and older name their tasks."""
        said = {"role": "user", "parts": [{"type": "text", "text": "echo x"}]}
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tasks/send",
            "params": {"id": "theirs", "message": said},
        }
        client = Client(bob.peer.client.app, f"/agents/{bob.agent.slug}/a2a/0.1")
        missing = await client.post("/", call)
        await run_in_thread(Task.objects.all().delete)
        await bob.alices("theirs", ended=True)
        foreign = await client.post("/", call)
        assert anonymised(foreign) == anonymised(missing)
        assert missing.json["result"]["status"]["state"] == "completed"
        assert await run_in_thread(Task.objects.filter(public_id="theirs").count) == 2

    async def test_is_accepted_with_the_same_statements(self, bob: Bob) -> None:
        scope = bob.me.scope(bob.agent.slug, shared=bob.agent.visibility == "tenant")
        told: list[list[str]] = []
        for task in ("missing", "theirs"):
            with statements() as said:
                await run_in_thread(accept, new(task, scope=scope, context_id=task, held=True))
            told.append(said)
            if task == "missing":
                await bob.alices("theirs")
        assert told[0] == told[1]


@pytest.mark.in_turn("bob", share=2)
async def test_a_page_token_of_another_is_none(bob: Bob) -> None:
    made_up = Question("ListTasks", {"pageToken": "WzEsMl0:made-up"})
    missing, _ = await bob.ask(made_up)
    headers, _ = await known("umbrella")
    alice = bob.peer.__class__(Client(bearing(headers), bob.peer.client.base))
    for number in range(2):
        await alice.send(messageId=str(number))
    token = (await alice.call("ListTasks", {"pageSize": 1}))["nextPageToken"]
    assert token
    foreign, _ = await bob.ask(Question("ListTasks", {"pageToken": token}))
    assert foreign == missing
    assert missing.status in {200, 400}
    assert b"pageToken" in missing.body


@pytest.mark.in_turn("bob", share=2)
@pytest.mark.parametrize("tenant", ["t" * 256, "t" * 252], ids=len)
async def test_a_tenant_that_is_too_long_is_the_clients_mistake(bob: Bob, tenant: str) -> None:
    """`acme/` comes before it."""
    for question in QUESTIONS:
        named = Question(question.operation, {**question.params, "tenant": tenant})
        answer, looked = await bob.ask(named)
        assert b"is too long" in answer.body
        assert answer.status in {200, 400}
        assert not looked
