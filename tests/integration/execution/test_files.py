"""The files of a turn: read where they are, put away when they are large, fetched only by the guard."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.files.storage import storages

from a2a_project.operations import TABLE
from a2a_tasks.agents import AgentError, Part, Turn, file, link
from a2a_tasks.agents.emission import Chunk
from a2a_tasks.caller import Caller
from a2a_tasks.execution.sources import StoredFiles
from a2a_tasks.models import Artifact, Event, StoredFile, Task
from a2a_tasks.protocol import values
from a2a_tasks.protocol.errors import Overloaded, TaskNotFound
from a2a_tasks.protocol.files import refers
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Role
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.execution.host import Client, hosting
from tests.support.push import receivers

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]

LARGE = bytes(range(256)) * 1024
BOB = Caller(principal="user:bob")


@pytest.fixture(autouse=True)
async def local(settings: Any) -> AsyncIterator[None]:
    """Runs are this process's own; the test may fetch from itself."""
    settings.A2A_RUNS = "local"
    settings.A2A_POLL_SECONDS = 0.1
    settings.A2A_FETCH_ALLOW_PRIVATE = True
    async with hosting():
        yield


async def told(client: Client, *parts: Part, **about: Any) -> values.Task:
    """The task of a message with these parts, once it has settled."""
    message = Message(message_id=uuid.uuid4().hex, role=Role.USER, parts=parts)
    request = SendMessageRequest(message=message, **about)
    task = await TABLE["SendMessage"](request, client.call())
    assert isinstance(task, values.Task)
    return task


def word(task: values.Task) -> str:
    """How the task stands, and the text it says to that."""
    parts = msgspec.json.decode(task.status.message)["parts"] if task.status.message else []
    return " ".join([task.status.state.word, *(part["text"] for part in parts)])


def answer(task: values.Task) -> list[dict[str, Any]]:
    """The parts of its only artifact."""
    (artifact,) = task.artifacts or []
    found: list[dict[str, Any]] = msgspec.json.decode(artifact)["parts"]
    return found


async def sizes(turn: Turn) -> Any:
    """Say how large each part is, by all means there are."""
    for part in turn.parts:
        yield f"{len(await turn.fetch(part))};"


def sizes_in_a_thread(turn: Turn) -> Any:
    """The same, synchronously."""
    for part in turn.parts:
        yield f"{len(turn.read(part).now())};"


class TestReading:
    @pytest.mark.parametrize("run", [sizes, sizes_in_a_thread], ids=["async", "thread"])
    async def test_small_and_large_files_are_read_alike(self, run: Callable[..., Any]) -> None:
        with playing(run, default_input_modes=("*/*",)) as agent:
            parts = (file(b"abc", "a", "x/y"), file(LARGE, "b", "x/y"))
            task = await told(Client(agent), *parts)
        assert "".join(part["text"] for part in answer(task)) == f"3;{len(LARGE)};"

    async def test_what_is_no_file_is_a_mistake(self) -> None:
        async def run(turn: Turn) -> Any:
            for part in (Part(text="x"), Part(data=1), link("https://example.com/")):
                with pytest.raises(ValueError, match="no bytes"):
                    await turn.read(part)
            yield "well"

        with playing(run) as agent:
            assert word(await told(Client(agent), Part(text="x"))) == "completed"

    async def test_a_file_of_somebody_else_does_not_exist(self) -> None:
        """Also when the agent is told its reference by a client."""

        async def run(turn: Turn) -> Any:
            yield link(turn.text) if turn.text else "kept"

        with playing(run, default_input_modes=("*/*",)) as agent:
            await told(Client(agent), file(LARGE, "b", "x/y"))
            reference = f"a2a-file:{(await run_in_thread(StoredFile.objects.get)).pk.hex}"
            mine = await told(Client(agent), Part(text=reference))
            theirs = await told(Client(agent, BOB), Part(text=reference))
        assert word(mine) == "completed"
        assert word(theirs) == "failed The file is no longer there."

    async def test_a_file_that_was_removed_fails_the_task_with_the_reason(self) -> None:
        async def run(turn: Turn) -> Any:
            await run_in_thread(lambda: StoredFile.objects.update(task=None))
            await turn.read(turn.parts[0])
            yield "never"

        with playing(run, default_input_modes=("*/*",)) as agent:
            task = await told(Client(agent), file(LARGE, "b", "x/y"))
        assert word(task) == "failed The file is no longer there."


class TestPuttingAway:
    async def test_large_files_of_every_kind_of_word_leave_the_rows(self) -> None:
        async def run(turn: Turn) -> Any:
            page = turn.stream("page")
            yield turn.working(file(LARGE, "a", "x/y"))
            yield page.write(file(LARGE, "b", "x/y"))
            yield page.write("and", file(b"small", "c", "x/y"), last=True)
            yield file(LARGE, "d", "x/y")
            yield turn.complete(file(LARGE, "e", "x/y"))

        with playing(run) as agent:
            client = Client(agent)
            task = await told(client, Part(text="go"))
            assert await client.get(task.id) == task
        assert [len(text) < 3000 for text in await run_in_thread(_bodies)] == [True] * len(
            await run_in_thread(_bodies)
        )
        assert await run_in_thread(StoredFile.objects.count) == 4
        page, rest = (msgspec.json.decode(text)["parts"] for text in task.artifacts or [])
        assert ["url" in part for part in (*page, *rest)] == [True, False, False, True]
        assert base64.b64decode(page[2]["raw"]) == b"small"

    async def test_a_direct_message_has_its_large_file_by_url(self) -> None:
        async def run(turn: Turn) -> Any:
            yield turn.reply("here", file(LARGE, "a", "x/y"))

        with playing(run, replies_directly=True) as agent:
            client = Client(agent)
            said = await TABLE["SendMessage"](client.request("go"), client.call())
        assert isinstance(said, values.Raw)
        assert not refers(bytes(said))
        parts = msgspec.json.decode(said)["parts"]
        assert parts[1]["url"].startswith(f"/agents/{agent.slug}/files/")

    async def test_a_file_of_an_earlier_task_is_copied_so_that_it_outlives_it(self) -> None:
        async def run(turn: Turn) -> Any:
            for task in await turn.references:
                (said,) = [msgspec.json.decode(m, type=Message) for m in task.history or []]
                yield turn.artifact(*said.parts, id="again")
            if not turn.message.reference_task_ids:
                yield "kept"

        with playing(run, default_input_modes=("*/*",)) as agent:
            client = Client(agent)
            first = await told(client, file(LARGE, "a", "x/y"))
            message = Message(
                message_id="m",
                role=Role.USER,
                parts=(Part(text="again"),),
                reference_task_ids=(first.id,),
            )
            request = SendMessageRequest(message=message)
            second = await TABLE["SendMessage"](request, client.call())
        assert word(second) == "completed"
        tasks = await run_in_thread(
            lambda: sorted(StoredFile.objects.values_list("task__public_id", "size"))
        )
        assert tasks == sorted((task.id, len(LARGE)) for task in (first, second))

    def test_nothing_is_done_for_words_without_files(self) -> None:
        said = Chunk(artifact_id="a", parts=(Part(text="x" * 1_000_000), Part(data="x" * 100_000)))
        assert not StoredFiles.concern(said.parts)


def _bodies() -> list[str]:
    """All text in the log and in artifacts."""
    rows = (
        Event.objects.values_list("body", flat=True),
        Artifact.objects.values_list("body", flat=True),
    )
    return [body for column in rows for body in column]


class TestFetching:
    async def test_a_url_is_asked_by_the_host_when_the_agent_says_so(self) -> None:
        with playing(sizes, default_input_modes=("*/*",)) as agent:
            async with receivers.farm() as farm:
                url = farm.url("/more-than-was-asked")
                task = await told(Client(agent), link(url))
                assert [seen.line for seen in farm.seen] == ["GET /more-than-was-asked HTTP/1.1"]
        assert answer(task)[0]["text"] == "5;"

    async def test_nobody_asks_a_url_that_the_agent_leaves_alone(self) -> None:
        async def run(turn: Turn) -> Any:
            yield "left"

        with playing(run, default_input_modes=("*/*",)) as agent:
            async with receivers.farm() as farm:
                await told(Client(agent), link(farm.url("/ok")), file(LARGE, "a", "x/y"))
                assert not farm.connections

    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("/huge-length", "there is no answer"),
            ("/endless-body", "too large, or did not come"),
            ("/never-answers", "there is no answer"),
            ("/closes-at-once", "there is no answer"),
            ("/gzip-bomb", "compressed"),
            ("/status?404", "the answer is 404"),
            ("/status?302", "the answer is 302"),
        ],
    )
    async def test_what_cannot_be_had_fails_the_task_with_the_reason(
        self, path: str, why: str, settings: Any
    ) -> None:
        settings.A2A_FETCH_BYTES = 200_000
        settings.A2A_FETCH_SECONDS = 1.0
        with playing(sizes, default_input_modes=("*/*",)) as agent:
            async with receivers.farm() as farm:
                task = await told(Client(agent), link(farm.url(path)))
        assert word(task).startswith("failed The file")
        assert why in word(task)

    async def test_a_limit_of_the_agent_counts_below_that_of_the_host(self) -> None:
        async def run(turn: Turn) -> Any:
            with pytest.raises(AgentError, match="too large"):
                await turn.fetch(turn.parts[0], max_bytes=4)
            yield "refused"

        with playing(run, default_input_modes=("*/*",)) as agent:
            async with receivers.farm() as farm:
                task = await told(Client(agent), link(farm.url("/more-than-was-asked")))
        assert answer(task)[0]["text"] == "refused"

    async def test_what_the_server_calls_it_must_be_taken_by_the_agent(self) -> None:
        with playing(sizes, default_input_modes=("image/png",)) as agent:
            async with receivers.serving(_html) as port:
                url = f"http://127.0.0.1:{port}/a.png"
                task = await told(Client(agent), link(url, media_type="image/png"))
        assert word(task) == "failed The file is of a media type the agent does not take."


class TestSending:
    async def test_a_message_that_comes_again_brings_its_file_once(self) -> None:
        with playing(sizes, default_input_modes=("*/*",)) as agent:
            client = Client(agent)
            parts = (file(LARGE, "a", "x/y"),)
            request = SendMessageRequest(
                message=Message(message_id="m", role=Role.USER, parts=parts)
            )
            call = client.call(idempotency_key="once")
            tasks = await asyncio.gather(*(TABLE["SendMessage"](request, call) for _ in range(4)))
        assert len({task.id for task in tasks}) == 1
        assert await run_in_thread(StoredFile.objects.count) == 1

    async def test_a_message_that_is_refused_leaves_nothing(self, settings: Any) -> None:
        with playing(sizes, default_input_modes=("*/*",)) as agent:
            part = file(LARGE, "a", "x/y")
            message = Message(message_id="m", role=Role.USER, parts=(part, part), task_id="none")
            before = await asyncio.to_thread(_on_the_disk)
            with pytest.raises(TaskNotFound):
                await TABLE["SendMessage"](
                    SendMessageRequest(message=message), Client(agent).call()
                )
            assert await asyncio.to_thread(_on_the_disk) == before
        assert not await run_in_thread(StoredFile.objects.exists)

    async def test_a_storage_that_is_away_refuses_and_stores_nothing(
        self, settings: Any, tmp_path: Path
    ) -> None:
        (tmp_path / "a file").touch()
        options = {"location": str(tmp_path / "a file")}
        backend = "django.core.files.storage.FileSystemStorage"
        own = {"BACKEND": backend, "OPTIONS": options}
        settings.STORAGES = {**settings.STORAGES, "a2a_files": own}
        with playing(sizes, default_input_modes=("*/*",)) as agent:
            with pytest.raises(Overloaded):
                await told(Client(agent), file(LARGE, "a", "x/y"))
            assert not await run_in_thread(Task.objects.exists)


def _on_the_disk() -> set[str]:
    """The names of all files kept."""
    place = Path(storages["a2a_files"].path(""))
    return {path.name for path in place.rglob("*") if path.is_file()}


async def _html(reader: Any, writer: Any) -> None:
    """Answer with a page."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    )
