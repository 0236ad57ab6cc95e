"""A newcomer in the playground, and what must work there in every dialect."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connections
from playwright.async_api import Page, Route, expect
from pytest_django.plugin import DjangoDbBlocker

from a2a_console.queue.form_fields import list_fields
from a2a_tasks.access.api_keys import issue
from lab.browser import grpc_line
from lab.browser.conftest import ENVIRON, BrowsedHost, Visit
from lab.browser.faults import Faults
from lab.browser.looks import axe, presentable, shot
from tests.journeys import hosts
from tests.model_server import ModelServer, serving_model
from tests.support.execution.waiting import until
from tests.support.proxy import Behaviour, Proxy

LAST = ".pg-theirs >> nth=-1"
EVERYWHERE = [
    ("v10", "JSONRPC"), ("v10", "HTTP+JSON"), ("dr", "JSONRPC"), ("dr", "HTTP+JSON"), ("v03", "JSONRPC"), ("v03", "HTTP+JSON"),
    ("v02", "JSONRPC"), ("v02", "HTTP+JSON"), ("v01", "JSONRPC"), ("v00", "JSONRPC"), ("s0", "JSONRPC"),
]  # fmt: skip
#: The newest way, an old one over HTTP+JSON, and the oldest published.
WAYS = [("v10", "JSONRPC"), ("v03", "HTTP+JSON"), ("v00", "JSONRPC")]
everywhere = pytest.mark.parametrize(("dialect", "binding"), EVERYWHERE)
both_bindings = pytest.mark.parametrize(("dialect", "binding"), WAYS[:2])
ways = pytest.mark.parametrize(("dialect", "binding"), WAYS)


async def enter(page: Page, dialect: str = "v10", binding: str = "JSONRPC") -> None:
    """Open the playground, and choose a way to talk to the demo agent, once it is known."""
    await page.goto("/")
    await expect(page.get_by_label("Agent")).to_have_value("demo")
    await choose(page, "Protocol version", dialect)
    await choose(page, "Binding", binding)


@contextlib.asynccontextmanager
async def settings(page: Page) -> AsyncIterator[None]:
    """Within, the sheet of the settings is open."""
    await page.locator("#pg-settings > button").click()
    yield
    await page.keyboard.press("Escape")
    await expect(page.locator("#pg-how")).to_be_hidden()


async def choose(page: Page, label: str, value: str) -> None:
    """Choose something in the settings."""
    async with settings(page):
        await page.get_by_label(label).select_option(value)


async def open_wire(page: Page) -> None:
    """Open the drawer with what goes over the wire, if it is closed."""
    if await page.locator("#pg-wire").get_attribute("open") is None:
        await page.locator("#pg-wire > summary").click()


async def bodies_of(page: Page, selector: str) -> list[str]:
    """The JSON of the frames in these lines, which are opened."""
    found = []
    for line in await page.locator(selector).all():
        await line.locator("summary").click()
        found += (await line.locator("pre").inner_text()).split("\n\n")
    return found


async def say(page: Page, text: str) -> None:
    """Write a message and send it."""
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()


@contextlib.asynccontextmanager
async def watched(page: Page) -> AsyncIterator[list[float]]:
    """Afterwards the list has the milliseconds of processor time of each task that the page's main thread did within.

    What other processes of the machine take does not count.
    """
    browser, tasks = page.context.browser, list[float]()
    assert browser
    await browser.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline"])
    yield tasks
    events = json.loads(await browser.stop_tracing())["traceEvents"]
    named = [one for one in events if one["name"] == "thread_name"]
    begun = next(one for one in events if one["name"] == "TracingStartedInBrowser")
    own = {frame["processId"] for frame in begun["args"]["data"]["frames"]}
    main = {
        one["tid"] for one in named if one["args"]["name"] == "CrRendererMain" and one["pid"] in own
    }
    found = (one for one in events if one["name"] == "RunTask" and one["tid"] in main)
    tasks += [one["tdur"] / 1000 for one in found if "tdur" in one]  # else it has not ended


async def becomes(page: Page, state: str) -> None:
    """The newest answer says this state, and is complete."""
    await expect(page.locator(f"{LAST} >> .pg-state")).to_have_text(state)
    if state != "working":
        await expect(page.locator(LAST)).not_to_have_attribute("aria-busy", "true")


async def task(page: Page) -> str:
    """The id of the task that is talked about."""
    return (await page.inner_text("#pg-task")).split()[1].rstrip(":")


async def numbers(page: Page) -> list[int]:
    """The numbers of all events on the wire, as they came."""
    titles = await page.locator("#pg-frames .pg-in > .pg-line").all_text_contents()
    return [int(number) for title in titles for number in re.findall(r"(?:event |–)(\d+)", title)]


class TestANewcomer:
    async def test_picks_an_agent_and_sees_its_answer(self, page: Page) -> None:
        await page.goto("/")
        await expect(page.get_by_label("Agent")).to_have_value("demo")
        await shot(page, "playground")
        await page.get_by_role("button", name="chunks 10").click()
        await page.get_by_role("textbox", name="Message").press("Enter")
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text("#9;")
        said = page.get_by_role("status").and_(page.locator("#pg-says"))
        await expect(said).to_have_text(re.compile(r"^Demo has finished: #0;.*…$"))
        assert await numbers(page) == sorted(set(await numbers(page)))
        await presentable(page, "playground-answered")

    async def test_comes_by_a_link_to_an_agent(self, page: Page) -> None:
        await page.goto("/?agent=tables")
        await expect(page.get_by_label("Agent")).to_have_value("tables")
        await page.goto("/?agent=nobody")
        await expect(page.get_by_label("Agent")).to_have_value("demo")

    async def test_sends_nothing_before_there_is_an_agent(self, page: Page) -> None:
        """What is written meanwhile stays, and is sent when the agents are known."""
        met = asyncio.Event()

        async def late(route: Route) -> None:
            await met.wait()
            await route.continue_()

        await page.route("**/agents/", late)
        await page.goto("/")
        await choose(page, "Protocol version", "v10")
        await page.get_by_role("textbox", name="Message").fill("echo patience")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        met.set()
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(page.locator(LAST)).to_contain_text("patience")

    async def test_sends_nothing_while_it_asks_for_the_agents_anew(self, page: Page) -> None:
        """As after new credentials: what is said meanwhile would go with the conversation that ends then."""
        met = asyncio.Event()

        async def late(route: Route) -> None:
            await met.wait()
            await route.continue_()

        await enter(page)
        await page.route("**/agents/", late)
        async with settings(page):
            await page.locator("#pg-credentials summary").click()
            await page.get_by_label("Kind").select_option("key")
        await page.get_by_role("textbox", name="Message").fill("echo patience")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        await page.get_by_role("textbox", name="Message").press("Enter")
        await expect(page.locator(LAST)).to_have_count(0)
        met.set()
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(page.locator(LAST)).to_contain_text("patience")

    @everywhere
    async def test_talks_in_every_dialect_over_every_binding(
        self, page: Page, tmp_path: Path, dialect: str, binding: str
    ) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page, dialect, binding)
        # A stream; the question of an agent; the answer goes to the same task.
        await say(page, "chunks 4")
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text("#3;")
        first = await task(page)
        await say(page, "ask Who?")
        await becomes(page, "input-required")
        await expect(page.locator(LAST)).to_contain_text("Who?")
        asked = await task(page)
        await say(page, "It is me")
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text("It is me")
        assert await task(page) == asked != first
        # An answer that is no task, where the dialect has such.
        await say(page, "message hi there")
        await expect(page.locator(LAST)).to_contain_text("hi there")
        # A file goes there and back.
        await drop(page, "notes.txt", "text/plain", "what I wrote")
        await say(page, "take this")
        await becomes(page, "completed")
        link = page.locator(LAST).get_by_role("link", name="notes.txt")
        async with page.expect_download() as download:
            await link.click()
        saved = tmp_path / "saved"
        await (await download.value).save_as(saved)
        assert saved.read_text() == "what I wrote"
        # One answer in place of a stream; and the same by curl, as another task.
        await choose(page, "Response", "send")
        await open_wire(page)
        await page.get_by_role("button", name="Clear").click()
        await say(page, 'data it\'s "copied"')
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text('"length": 13')
        assert await numbers(page) == []
        printed = await run("sh", "-c", await copy(page, "Copy as curl"))
        assert re.search(r'"(TASK_STATE_COMPLETED|completed)"', printed)
        assert "it's" in printed
        assert await task(page) not in printed

    @ways
    async def test_answers_a_question_with_a_form(
        self, page: Page, faults: Faults, dialect: str, binding: str
    ) -> None:
        if binding == "HTTP+JSON":
            faults.expect("status of 400")
        await enter(page, dialect, binding)
        form = page.locator("#pg-form")
        await expect(form).to_be_hidden()
        await say(page, "form")
        await becomes(page, "input-required")
        await form.get_by_label("How many people").fill("4")
        if dialect == "v10":
            await presentable(page, "playground-form")
        await page.get_by_role("button", name="Send", exact=True).click()
        # The page knows what is missing, and sends nothing.
        await expect(form.get_by_label("Where to")).to_be_focused()
        await expect(form.locator("[aria-invalid]")).to_have_count(2)
        await expect(page.locator(".pg-theirs")).to_have_count(1)
        await form.get_by_label("Where to").select_option("Rome")
        sure = form.get_by_role("radiogroup", name="Book it now (required)")
        await sure.get_by_role("radio").first.focus()
        await page.keyboard.press("ArrowDown")  # the second of two: no
        await expect(sure.get_by_label("no")).to_be_checked()
        await form.get_by_label("How many people").fill("12")
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(form.get_by_label("How many people")).to_be_focused()
        # The host has the last word.
        await form.get_by_label("How many people").evaluate("node => node.removeAttribute('max')")
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(form).to_contain_text("12 is greater than the maximum of 9")
        if dialect == "v10":
            await presentable(page, "playground-form-refused")
        if binding == "JSONRPC" and dialect == "v10":
            await open_wire(page)
            await page.get_by_role("button", name="Copy as Python").last.click()
            program = await page.get_by_label("Copied").input_value()
            compile(program, "copied", "exec")
            assert r"\"people\":12," in program
        await form.get_by_label("How many people").fill("2")
        await page.get_by_role("button", name="Send", exact=True).click()
        await becomes(page, "completed")
        said = json.loads(await page.locator(f"{LAST} >> .pg-data").inner_text())
        assert said == {"to": "Rome", "people": 2, "window": False, "sure": False}
        await expect(form).to_be_hidden()

    async def test_finds_the_fields_of_a_question_again(self, page: Page) -> None:
        await enter(page)
        await say(page, "form Where and when?")
        await becomes(page, "input-required")
        await page.reload()
        await expect(page.locator("#pg-form").get_by_label("Where to")).to_be_visible()

    async def test_sees_the_same_kinds_of_fields_as_operators(self, page: Page) -> None:
        texts: list[dict[str, Any]] = [
            {"type": "string"},
            {"type": "string", "enum": ["a"]},
            {"type": "string", "format": "textarea"},
            {"type": "string", "maxLength": 201},
        ]
        others = [{"enum": [1]}, {"type": "boolean"}, {"type": "boolean", "default": True}]
        others += [{"type": kind} for kind in ("integer", "number", "array", "object")]
        schemas = [*texts, *others, {"type": ["boolean", "object"]}, {}]
        named = {str(number): schema for number, schema in enumerate(schemas)}
        await page.goto("/")
        for required in ([], list(named)):
            fields = list_fields({"properties": named, "required": required}, {})
            shown = await page.evaluate(
                """async ([url, schemas, required]) => {
                    const { kindOf } = await import(url);
                    return schemas.map((one) => kindOf(one, required));
                }""",
                ["/static/a2a_console/playground/form.js", schemas, bool(required)],
            )
            assert shown == [field.kind for field in fields]

    async def test_needs_no_mouse_and_hears_what_happens(self, page: Page) -> None:
        await page.goto("/")
        await expect(page.get_by_label("Agent")).to_have_value("demo")
        await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
        await page.keyboard.type("echo by keys")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("in two lines")
        await page.keyboard.press("Enter")
        await expect(page.locator(LAST)).to_contain_text("in two lines")
        await expect(page.locator("#pg-says[role=status]")).to_contain_text("by keys")

    async def test_adds_a_file_by_button_and_leaves_another_out(self, page: Page) -> None:
        await enter(page)
        files = [
            {"name": name, "mimeType": "text/plain", "buffer": b"x"} for name in ("a.txt", "b.txt")
        ]
        await page.locator("#pg-choose").set_input_files(files)  # type: ignore[arg-type]
        await page.get_by_role("button", name="Leave out a.txt").click()
        await say(page, "take this")
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text("b.txt")
        await expect(page.locator("#pg-turns")).not_to_contain_text("a.txt")

    @both_bindings
    async def test_cancels_a_long_one(self, page: Page, dialect: str, binding: str) -> None:
        await enter(page, dialect, binding)
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await say(page, "sleep 600")
        await becomes(page, "working")
        await page.get_by_role("button", name="Stop").click()
        await becomes(page, "canceled")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()

    async def test_is_told_why_a_message_was_refused(self, page: Page) -> None:
        await enter(page)
        await page.get_by_label("Agent").select_option("tables")
        await drop(page, "odd.bin", "application/x-odd", "?")
        await say(page, "hello")
        await expect(page.locator(LAST)).to_contain_text("Refused: ")
        await axe(page)

    async def test_is_told_how_to_speak_grpc(self, page: Page) -> None:
        await enter(page, "v10", "GRPC")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
        await page.get_by_role("textbox", name="Message").fill("it's me")
        line = page.get_by_label("A line for gRPC")
        for mode, rpc in (("stream", "SendStreamingMessage"), ("send", "SendMessage")):
            await choose(page, "Response", mode)
            await expect(line).to_contain_text(f"lf.a2a.v1.A2AService/{rpc}")
            asked = grpc_line.read(await line.inner_text())
            assert asked.plaintext
            assert asked.metadata.pop("a2a-extensions").startswith("urn:a2a-host:extensions:")
            assert asked.metadata == {"a2a-agent": "demo", "a2a-version": "1.0"}
            assert asked.message["message"]["parts"] == [{"text": "it's me"}]

    @pytest.mark.parametrize("dialect", ["v10", "dr", "v03", "v02"])
    async def test_copies_what_was_said_as_grpc(self, page: Page, dialect: str) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page, dialect)
        await drop(page, "notes.txt", "text/plain", "what I wrote")
        await say(page, 'it\'s "me"')
        await becomes(page, "completed")
        asked = grpc_line.read(await copy(page, "Copy as grpcurl"))
        assert asked.rpc == "SendStreamingMessage"
        assert asked.metadata["a2a-agent"] == "demo"
        text, content = asked.said
        assert text == 'it\'s "me"'
        # Released clients of 0.2 and 0.3 put base64 into a field of bytes.
        doubled = dialect in {"v03", "v02"}
        assert (base64.b64decode(content) if doubled else content) == b"what I wrote"
        await page.get_by_role("button", name="Clear").click()
        await say(page, "sleep 600")
        await becomes(page, "working")
        await page.get_by_role("button", name="Stop").click()
        await becomes(page, "canceled")
        await page.get_by_role("button", name="Copy as grpcurl").last.click()
        asked = grpc_line.read(await page.get_by_label("Copied").input_value())
        assert (asked.rpc, asked.task) == ("CancelTask", await task(page))

    async def test_says_more_while_the_agent_works(self, page: Page) -> None:
        await enter(page)
        await say(page, "count 30")
        await expect(page.locator(LAST)).to_contain_text("2")
        asked = await task(page)
        await say(page, "echo and now")
        await expect(page.locator(".pg-theirs")).to_have_count(2)
        await expect(page.locator(".pg-theirs").first).not_to_have_attribute("aria-busy", "true")
        await expect(page.locator("#pg-task")).to_contain_text(asked)
        await expect(page.locator("#pg-frames > li")).to_have_count(2)

    async def test_keeps_the_lines_about_the_work(self, page: Page) -> None:
        await enter(page)
        await say(page, "sleep 1")
        await becomes(page, "completed")
        await expect(page.locator(f"{LAST} >> .pg-step")).to_have_text("Sleeping 1 s")
        await page.reload()
        await expect(page.locator(f"{LAST} >> .pg-step")).to_have_text("Sleeping 1 s")

    async def test_sees_each_line_of_progress(self, page: Page) -> None:
        await page.goto("/")
        shown = await page.evaluate(
            """async () => {
                const { Answer } = await import("/static/a2a_console/playground/view.js");
                const answer = new Answer("Trips");
                for (const city of ["Rome", "Oslo", "Lima"])
                    answer.take({ kind: "status", state: "working", words: [{ text: `${city} is booked` }] });
                return Array.from(answer.node.querySelectorAll(".pg-step"), (one) => one.textContent);
            }"""
        )
        assert shown == ["Rome is booked", "Oslo is booked", "Lima is booked"]

    async def test_edits_a_message_and_sends_it_again_in_a_new_chat(self, page: Page) -> None:
        await enter(page)
        await say(page, "echo first")
        await becomes(page, "completed")
        first = await task(page)
        await page.get_by_role("button", name="Edit").click()
        await expect(page.locator(".pg-turn")).to_have_count(0)
        message = page.get_by_role("textbox", name="Message")
        await expect(message).to_have_value("echo first")
        await message.fill("echo second")
        await message.press("Enter")
        await becomes(page, "completed")
        assert await task(page) != first
        chats = page.locator("#pg-list button")
        await expect(chats.filter(has_text="echo first").first).to_be_visible()
        await expect(chats.first).to_contain_text("echo second")

    async def test_sees_pictures_sounds_and_documents(self, page: Page, faults: Faults) -> None:
        """The policy lets nothing else be shown: the test fails with what the browser says against it."""
        faults.expect(
            "chrome(-extension)?://|postMessage"
        )  # the browser's viewer of PDF, and axe in its frame
        await enter(page)
        drawn = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"></svg>'
        await drop(page, "chart.svg", "image/svg+xml", drawn)
        await drop(page, "beep.wav", "audio/wav", "RIFF")
        await drop(page, "page.pdf", "application/pdf", PDF)
        await drop(page, "page.html", "text/html", "<script>document.title = 1</script>")
        await say(page, "show them")
        await becomes(page, "completed")
        shown = page.locator(LAST)
        width = "node => node.decode().then(() => node.naturalWidth)"
        assert await shown.get_by_role("img", name="chart.svg").evaluate(width) == 20
        await expect(shown.get_by_label("beep.wav")).to_have_attribute("controls", "")
        await shown.get_by_text("Preview of page.pdf").click()
        frame = shown.get_by_title("page.pdf")
        await expect(frame).to_have_attribute("src", re.compile("^data:application/pdf;base64,"))
        assert await shown.locator("iframe").count() == 1
        await presentable(page, "playground-files")

    async def test_finds_earlier_chats(self, page: Page) -> None:
        await enter(page)
        await say(page, "ask Who?")
        await becomes(page, "input-required")
        asked = await task(page)
        await page.get_by_role("button", name="New chat").click()
        await expect(page.locator(".pg-turn")).to_have_count(0)
        assert "task=" not in page.url
        await page.locator("#pg-list button", has_text="ask Who?").first.click()
        await becomes(page, "input-required")
        assert f"task={asked}" in page.url
        await expect(page.locator(".pg-mine").first).to_contain_text("ask Who?")
        await say(page, "me again")
        await becomes(page, "completed")
        await say(page, "echo another task of the chat")
        await becomes(page, "completed")
        assert await task(page) != asked
        await page.go_back()
        await expect(page.locator(".pg-turn")).to_have_count(0)
        await page.go_forward()
        await expect(page.locator(".pg-turn")).to_have_count(6)

    async def test_who_looks_at_a_task_under_way_sees_all_of_it(
        self, page: Page, visit: Visit
    ) -> None:
        """In the oldest dialect, too, whose streams do not begin with the task."""
        await enter(page, "v00")
        await say(page, "chunks 6 1")
        await becomes(page, "working")
        await page.reload()
        await becomes(page, "completed")
        assert "version=v00" in page.url
        said = await page.locator(f"{LAST} >> .pg-artifact .pg-text").inner_text()
        assert re.findall(r"#(\d);", said) == list("012345")


PDF = """%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Root 1 0 R>>
"""


async def drop(page: Page, name: str, kind: str, text: str) -> None:
    """Drop a file on the message, as a person does."""
    transfer = await page.evaluate_handle(
        """([name, type, text]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], name, { type }));
            return transfer;
        }""",
        [name, kind, text],
    )
    await page.dispatch_event("#pg-say", "drop", {"dataTransfer": transfer})


class TestALostConnection:
    @pytest.mark.parametrize(("dialect", "binding"), [*WAYS[:2], ("s0", "JSONRPC")])
    async def test_costs_neither_a_gap_nor_a_repetition(
        self, visit: Visit, host: BrowsedHost, faults: Faults, dialect: str, binding: str
    ) -> None:
        with Proxy(urlsplit(host.url).port or 0) as way:
            page = await through(way, visit, faults)
            await enter(page, dialect, binding)
            await page.get_by_label("Agent").select_option("ticker")
            await say(page, "40")
            await expect(page.locator(LAST)).to_contain_text("#2;")
            way.behave(Behaviour(refusing=True))
            way.reset()
            await expect(page.locator("#pg-link")).to_contain_text("connection lost, trying again")
            way.behave()
            await expect(page.locator(LAST)).to_contain_text("#9;")
            way.reset()
            await becomes(page, "completed")
        assert await ticks(page) == list(range(40))
        assert await numbers(page) == sorted(set(await numbers(page)))
        await expect(page.locator("#pg-link")).to_be_hidden()

    async def test_to_a_killed_process_goes_on_at_another(
        self, visit: Visit, host: BrowsedHost, faults: Faults
    ) -> None:
        with hosts.web(ENVIRON) as web, Proxy(urlsplit(web.url).port or 0) as way:
            page = await through(way, visit, faults)
            await enter(page)
            await page.get_by_label("Agent").select_option("ticker")
            await say(page, "40")
            await expect(page.locator(LAST)).to_contain_text("#4;")
            web.process.kill()
            await expect(page.locator("#pg-link")).to_contain_text("connection lost, trying again")
            way.retarget(urlsplit(host.url).port or 0)
            await becomes(page, "completed")
        assert await ticks(page) == list(range(40))


async def through(way: Proxy, visit: Visit, faults: Faults) -> Page:
    """A page whose connections can be cut."""
    url = f"http://{way.host}:{way.port}"
    faults.also(url)
    faults.expect(r"net::ERR_(CONNECTION_|EMPTY_RESPONSE|INCOMPLETE_CHUNKED|NETWORK_CHANGED)")
    return await visit(base_url=url)


async def ticks(page: Page) -> list[int]:
    """What the newest answer counts."""
    said = await page.locator(f"{LAST} >> .pg-artifact .pg-text").all_inner_texts()
    return [int(number) for number in re.findall(r"#(\d+);", "".join(said))]


#: How often the page and curl read the same stream at most.
ROUNDS = 8
#: The moment at which the next answer is complete, by the clock of the page: who asks now and then hears of it later.
END = """() => new Promise((resolve) => {
    const states = () => document.querySelectorAll(".pg-theirs .pg-state");
    const before = states().length;
    new MutationObserver((_, observer) => {
        if (states().length === before || [...states()].at(-1).textContent !== "completed") return;
        observer.disconnect();
        resolve(performance.now());
    }).observe(document.getElementById("playground"), { subtree: true, childList: true, characterData: true });
})"""


class TestALongStream:
    async def test_takes_at_most_twice_the_time_of_curl_and_leaves_the_page_awake(
        self, page: Page
    ) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page)
        await say(page, "chunks 5000")  # everything is warm afterwards
        await becomes(page, "completed")
        line = f"{await copy(page, 'Copy as curl')} >/dev/null"
        ratios, longest = list[float](), list[float]()
        # The best of some: other processes of the machine cost time, too, and the page and the host need a core each.
        while not ratios or ((min(ratios) > 2 or min(longest) > 200) and len(ratios) < ROUNDS):
            began = time.monotonic()
            await run("sh", "-c", line)
            alone = time.monotonic() - began
            async with watched(page) as tasks:
                ended = asyncio.ensure_future(page.evaluate(END))
                began = await page.evaluate("performance.now()")
                await say(page, "chunks 5000")
                message = page.get_by_role("textbox", name="Message")
                await message.press_sequentially("awake?", delay=50)
                ratios.append((await ended - began) / 1000 / alone)
                await expect(page.locator(LAST)).to_contain_text("#4999;")
            longest.append(max(tasks))
        # A key waits for one task at the most: 29 ms if nothing else runs. A page that starves does more at once.
        assert min(longest) <= 200, longest
        assert min(ratios) <= 2, ratios  # 1.4 on a machine that does nothing else (docs/figures.md)
        await expect(page.locator("#pg-frames")).to_contain_text("artifact text ×5000")
        assert await page.locator("#playground *").count() < 1000

    async def test_is_read_in_pieces_of_any_size(self, page: Page) -> None:
        """Between any two characters, also of an end of a line."""
        await page.goto("/")
        text = "id: 1\r\ndata: a\r\n\r\n: comment\n\nevent: error\ndata: b\ndata: c\n\n"
        found = await page.evaluate(
            """async (text) => {
                const { frames } = await import("/static/a2a_console/playground/sse.js");
                const found = [];
                for (let size = 1; size <= text.length; size += 1) {
                    const bytes = new TextEncoder().encode(text);
                    const body = new ReadableStream({ start(to) {
                        for (let at = 0; at < bytes.length; at += size) to.enqueue(bytes.slice(at, at + size));
                        to.close();
                    } });
                    const own = [];
                    for await (const { id, event, data, comment } of frames(body)) own.push([id, event, data, comment]);
                    found.push(JSON.stringify(own));
                }
                return [...new Set(found)].map(JSON.parse);
            }""",
            text,
        )
        frames = [["1", "message", "a", ""], [None, "message", None, "comment"]]
        assert found == [[*frames, [None, "error", "b\nc", ""]]]

    async def test_is_shown_in_part_if_it_is_very_long(self, page: Page) -> None:
        """Texts, JSON and frames of megabytes."""
        text = "# Title\n\nA *word* or two.\n\n" * 100_000
        parts = [{"text": text}, {"data": [text]}]
        status = {"state": "TASK_STATE_COMPLETED"}
        task = {"id": "1", "status": status, "artifacts": [{"artifactId": "1", "parts": parts}]}
        await page.route(
            "**/a2a/1.0",
            lambda route: route.fulfill(json={"jsonrpc": "2.0", "id": 1, "result": {"task": task}}),
        )
        await page.goto("/")
        await choose(page, "Response", "send")
        await say(page, "hello")
        await becomes(page, "completed")
        await expect(page.locator(f"{LAST} >> h4").first).to_have_text("Title")
        await expect(page.locator(LAST)).to_contain_text("(The rest is not shown.)")
        await open_wire(page)
        await page.locator("#pg-frames details.pg-in summary").click()
        await expect(page.get_by_label("Frames", exact=True)).to_be_visible()
        assert await page.locator("#playground *").count() < 40_000

    async def test_goes_on_after_a_reload(self, page: Page) -> None:
        await enter(page)
        await page.get_by_label("Agent").select_option("ticker")
        await say(page, "60")
        await expect(page.locator(LAST)).to_contain_text("#5;")
        asked = await task(page)
        await page.reload()
        await expect(page.locator(".pg-mine")).to_contain_text("60")
        await becomes(page, "completed")
        assert await ticks(page) == list(range(60))
        assert await page.locator(f"{LAST} >> .pg-text").count() == 1
        assert await task(page) == asked


class TestASecondTab:
    async def test_shows_the_chat_and_its_answer_reaches_the_first(
        self, page: Page, visit: Visit
    ) -> None:
        await enter(page)
        await say(page, "ask Who?")
        await becomes(page, "input-required")
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(other.locator(".pg-mine")).to_contain_text("ask Who?")
        current = page.locator("#pg-list [aria-current]")
        await expect(current).to_contain_text("input-required")
        await expect(other.locator(LAST)).to_contain_text("Who?")
        await say(other, "The second tab")
        await becomes(other, "completed")
        await expect(current).to_contain_text("completed")
        await page.bring_to_front()
        await becomes(page, "completed")
        await expect(page.locator(".pg-mine").last).to_contain_text("The second tab")
        await expect(page.locator(LAST)).to_contain_text("The second tab")
        # A stranger with the address sees the same.
        stranger = await visit()
        await stranger.goto(page.url)
        await expect(stranger.locator(".pg-turn")).to_have_count(4)


class TestAnOperator:
    async def test_opens_the_task_in_the_console(self, root: Page, page: Page) -> None:
        for visitor, link in ((root, 1), (page, 0)):
            await enter(visitor)
            await say(visitor, "echo hello")
            await becomes(visitor, "completed")
            await expect(visitor.locator("#pg-console:visible")).to_have_count(link)
        await root.get_by_role("link", name="Open in console").click()
        await expect(root).to_have_url(re.compile("/admin/a2a_tasks/task/"))
        await expect(root.locator("body")).to_contain_text("echo hello")


class TestTheWire:
    @both_bindings
    async def test_shows_the_request_the_answer_and_every_frame(
        self, page: Page, dialect: str, binding: str
    ) -> None:
        await enter(page, dialect, binding)
        await say(page, "chunks 3")
        await becomes(page, "completed")
        await open_wire(page)
        sent = json.loads(await page.get_by_label("Request", exact=True).text_content() or "")
        assert "chunks 3" in json.dumps(sent)
        heads = await page.locator("#pg-frames .pg-in > .pg-line").all_inner_texts()
        assert heads[0] == "200 text/event-stream"
        assert [head for head in heads if head.endswith("artifact text ×3")]
        bodies = [json.loads(text) for text in await bodies_of(page, "#pg-frames details.pg-in")]
        assert len(bodies) >= 5
        assert await numbers(page) == sorted(set(await numbers(page)))
        if binding == "JSONRPC":
            assert all(body["id"] == sent["id"] for body in bodies)

    async def test_a_copied_stream_is_one_in_a_shell(self, page: Page) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page, "v00")
        await say(page, "chunks 3")
        await becomes(page, "completed")
        printed = await run("sh", "-c", await copy(page, "Copy as curl"))
        assert re.findall(r"#(\d);", printed) == list("012")

    @ways
    async def test_a_copied_program_says_the_same(
        self, page: Page, tmp_path: Path, dialect: str, binding: str
    ) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page, dialect, binding)
        await drop(page, "ü.txt", "text/plain", "ü")
        await say(page, "say 'it' \"again\"")
        await becomes(page, "completed")
        text = await copy(page, "Copy as Python")
        assert ("from a2a.client" in text) == (dialect in {"v10", "v03"})
        program = tmp_path / "copied.py"
        program.write_text(text)
        printed = await run(sys.executable, "-W", "error", str(program))
        assert re.search(r'TASK_STATE_COMPLETED|"completed"', printed)
        assert "again" in printed

    async def test_a_copied_module_says_the_same(self, page: Page, tmp_path: Path) -> None:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await enter(page)
        await say(page, "say 'it' \"again\"")
        await becomes(page, "completed")
        module = tmp_path / "copied.mjs"
        module.write_text(await copy(page, "Copy as JavaScript"))
        printed = await run("node", str(module))
        assert "TASK_STATE_COMPLETED" in printed
        assert "again" in printed

    async def test_compares_the_same_call_in_two_versions(self, page: Page) -> None:
        await enter(page)
        await say(page, "echo hello")
        await becomes(page, "completed")
        await open_wire(page)
        await page.get_by_role("button", name="Compare versions").first.click()
        sides = page.locator("#pg-sides > div")
        for side, words in ((0, ["SendStreamingMessage", "TASK_STATE_COMPLETED"]), (1, ["message/stream", '"completed"'])):  # fmt: skip
            await expect(sides.nth(side).get_by_label("The request")).to_contain_text(words[0])
            await expect(sides.nth(side).get_by_label("The task")).to_contain_text(words[1])
        await page.get_by_label("Right version").select_option("v10 HTTP+JSON")
        await expect(sides.nth(1).get_by_label("The request")).to_contain_text("message:stream")
        await presentable(page, "playground-compare")
        await page.get_by_role("button", name="Close").click()

    async def test_does_not_show_or_copy_a_secret(self, page: Page, faults: Faults) -> None:
        faults.expect("status of 401")
        await enter(page)
        async with settings(page):
            await page.locator("#pg-credentials summary").click()
            await page.get_by_label("Kind").select_option("key")
            await page.get_by_label("Secret").fill("very-secret")
        await open_wire(page)
        await say(page, "hello")
        await expect(page.locator(LAST)).to_contain_text("Refused: ")
        for button in ("Copy as curl", "Copy as grpcurl"):
            await page.get_by_role("button", name=button).click()
            await expect(page.get_by_label("Copied")).to_have_value(re.compile("A2A_CREDENTIAL"))
            assert "very-secret" not in await page.get_by_label("Copied").input_value()
        line = await page.get_by_label("Copied").input_value()
        assert grpc_line.read(line).metadata["x-api-key"] == "$A2A_CREDENTIAL"
        assert "very-secret" not in await page.content()
        assert "very-secret" not in page.url
        assert await page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])") == "[{},{}]"  # fmt: skip


async def copy(page: Page, button: str) -> str:
    """What a button puts into the clipboard."""
    await open_wire(page)
    await page.get_by_role("button", name=button).first.click()
    await expect(page.locator("#pg-copied")).to_contain_text("Copied")
    return str(await page.evaluate("navigator.clipboard.readText()"))


async def run(*command: str) -> str:
    """What a command prints."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()
    return printed.decode()


async def receive(page: Page) -> None:
    """Let the page receive webhooks."""
    async with settings(page):
        await page.locator("#pg-webhook summary").click()
        await page.get_by_label("Send push notifications to this page").check()
        await expect(page.locator("#pg-hook-note")).to_contain_text("/playground/hooks/")


class TestAWebhook:
    @ways
    async def test_is_registered_and_its_notifications_are_verified(
        self, page: Page, dialect: str, binding: str
    ) -> None:
        await enter(page, dialect, binding)
        await receive(page)
        await say(page, "echo hello")
        await becomes(page, "completed")
        arrived = page.locator("#pg-deliveries")
        await expect(arrived).to_contain_text("completed", ignore_case=True)
        await expect(arrived.locator(".pg-good").first).to_have_text("signature verified")
        assert await arrived.locator(".pg-bad").count() == 0

    async def test_is_switched_off_for_an_agent_that_has_none(self, page: Page) -> None:
        """It would be refused with every message, and its switch is not shown there."""
        await enter(page)
        await receive(page)
        await page.get_by_label("Agent").select_option("tables")
        await expect(page.locator("#pg-webhook")).to_be_hidden()
        await say(page, "help")
        await expect(page.locator(f"{LAST} >> .pg-state")).to_have_text(
            re.compile("completed|input-required|failed|rejected")
        )
        assert await page.locator(".pg-refused").count() == 0
        await page.get_by_role("button", name="New chat").click()
        await expect(page.locator("#pg-says")).to_be_empty()

    async def test_of_the_oldest_dialect_has_the_hosts_own_key(self, page: Page) -> None:
        await enter(page, "s0")
        await receive(page)
        await say(page, "chunks 2 1")
        await becomes(page, "completed")
        arrived = page.locator("#pg-deliveries")
        await expect(arrived).to_contain_text("signed with the host's key")


@pytest.fixture
def key(host: BrowsedHost, django_db_blocker: DjangoDbBlocker) -> str:
    """What a caller may show."""
    with django_db_blocker.unblock():
        issued = issue("playground")
        connections.close_all()
    return str(issued.key)


class TestAHostThatIsCareful:
    async def test_says_what_it_asks_for(
        self, host: BrowsedHost, visit: Visit, faults: Faults, key: str
    ) -> None:
        """As in production: credentials are asked for, and no webhook may lead to the host's own machine."""
        refusing = dict.fromkeys(("A2A_ANONYMOUS", "A2A_WEBHOOK_ALLOW_PRIVATE"), "0")
        with hosts.web({**ENVIRON, **refusing}) as web:
            faults.also(web.url)
            faults.expect("status of 401")
            page = await visit(base_url=web.url)
            await enter(page)
            await say(page, "echo a")
            await expect(page.locator(LAST)).to_contain_text(
                "Add your credentials under Credentials."
            )
            async with settings(page):
                await page.locator("#pg-credentials summary").click()
                await page.get_by_label("Kind").select_option("key")
                await page.get_by_label("Secret").fill(key)
                await page.get_by_label("Keep until").check()
            await say(page, "echo b")
            await becomes(page, "completed")
            await page.reload()
            await expect(page.get_by_label("Agent")).to_have_value("demo")
            await receive(page)
            await say(page, "echo c")
            await expect(page.locator(LAST)).to_contain_text("A2A_WEBHOOK_ALLOW_PRIVATE=1")
            await axe(page)
            await expect(page.get_by_role("textbox", name="Message")).to_have_value("echo c")
            async with settings(page):
                await page.get_by_label("Send push notifications to this page").uncheck()
            await say(page, "echo d")
            await becomes(page, "completed")
            assert "A2A_CREDENTIAL" in await shown_copy(page)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """A model on this machine."""
    with serving_model() as served:
        yield served


@pytest.fixture(scope="module")
def authors(emptied: None, model: ModelServer) -> Iterator[str]:
    """The URL of a host for authors, with the examples that talk to the model."""
    allowed = {"A2A_FETCH_ALLOW_HTTP": "1", "A2A_FETCH_ALLOW_NETWORKS": "127.0.0.1"}
    apps = "examples.chat,examples.pydantic_ai_chat"
    environ = {**ENVIRON, **allowed, "A2A_APPS": f"{apps},{hosts.APPS['A2A_APPS']}"}
    with hosts.web({**environ, "CHAT_URL": model.url, "CHAT_MODEL": "", "DEBUG": "1"}) as web:
        yield web.url


@pytest.mark.backend("sqlite")
class TestAnAgentWithAModel:
    async def test_streams_and_is_cancelled(
        self, model: ModelServer, authors: str, visit: Visit, faults: Faults
    ) -> None:
        faults.also(authors)
        page = await visit(base_url=authors)
        await enter(page)
        await page.get_by_label("Agent").select_option("plain-chat")
        await say(page, "SAY a plan\nSAY a poem WAIT")
        await expect(page.locator(LAST)).to_contain_text("a poem")
        await expect(page.locator(LAST)).to_contain_text("a plan")
        await page.get_by_role("button", name="Stop").click()
        await becomes(page, "canceled")
        await until(lambda: model.of("left") != [])
        await say(page, "SAY a plan\nSAY another poem")
        await becomes(page, "completed")
        await expect(page.locator(LAST)).to_contain_text("another poem")

    async def test_that_raises_shows_its_author_the_trace(
        self, authors: str, visit: Visit, faults: Faults
    ) -> None:
        faults.also(authors)
        page = await visit(base_url=authors)
        await enter(page)
        await page.get_by_label("Agent").select_option("witness")
        await say(page, "nowhere")
        await becomes(page, "failed")
        trace = page.locator(LAST).get_by_label("Traceback")
        await expect(trace).to_contain_text("ValueError: 'nowhere' is no absolute path")
        await expect(page.locator("#pg-says")).to_have_text("Witness has failed: The agent failed.")
        await presentable(page, "playground-trace")

    async def test_of_a_framework_is_given_an_approval(
        self, authors: str, visit: Visit, faults: Faults
    ) -> None:
        faults.also(authors)
        page = await visit(base_url=authors)
        await enter(page)
        await page.get_by_label("Agent").select_option("chat")
        for answer, why, result in (
            ("Approve", "", "sent to Bob: hi"),
            ("Deny…", "it is too late", "it is too late"),
        ):
            await say(page, 'CALL send_mail {"to": "Bob", "text": "hi"}\nSAY $RESULT')
            await becomes(page, "input-required")
            card = page.get_by_role("group", name="send_mail(to=Bob, text=hi)")
            await card.get_by_role("button", name=answer).click()
            if why:
                await card.get_by_role("textbox").fill(why)
                await card.get_by_role("button", name="Deny", exact=True).click()
            await becomes(page, "completed")
            await expect(page.locator(LAST)).to_contain_text(result)
            if not why:
                tool = page.locator(f"{LAST} >> .pg-tool").last
                await expect(tool).to_contain_text("send_mail(to=Bob, text=hi) ✓")
                await expect(page.locator(LAST)).to_contain_text("tokens in")


async def shown_copy(page: Page) -> str:
    """What the newest request is copied as."""
    await open_wire(page)
    await page.get_by_role("button", name="Copy as curl").last.click()
    return await page.get_by_label("Copied").input_value()


HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="document.title=1"><script>{HOSTILE}</script></svg>'


class TestHostileContent:
    @both_bindings
    async def test_is_text(self, page: Page, dialect: str, binding: str) -> None:
        await enter(page, dialect, binding)
        markdown = f"echo **a** [b](javascript:document.title='run') {HOSTILE}"
        for text in (
            markdown,
            f"ask {HOSTILE}",
            f"{HOSTILE}",
            f"data {HOSTILE}",
            f"fail {HOSTILE}",
        ):
            await say(page, text)
            await expect(page.locator(LAST)).not_to_have_attribute("aria-busy", "true")
            await expect(page.locator(LAST)).to_contain_text("onerror")
        await drop(page, f"{HOSTILE}.svg", "image/svg+xml", SVG)
        await say(page, "take this")
        await becomes(page, "completed")
        link = page.locator(LAST).get_by_role("link")
        assert await link.get_attribute("download") == f"{HOSTILE}.svg"
        assert (await link.get_attribute("href") or "").startswith("blob:")
        assert await page.title() == "A2A host"
        assert await page.locator("#playground :is(script, svg, iframe, object)").count() == 0
        picture = page.locator("#playground img")
        assert (await picture.get_attribute("src") or "").startswith("data:image/svg+xml;base64,")

    async def test_in_markdown_becomes_neither_script_nor_request(self, page: Page) -> None:
        """Pictures would tell a stranger that the text was read, so they stay links."""
        await enter(page)
        lines = [
            "# A title",
            "| a | b |\n|--:|---|\n| 1 | **bold** |",
            "![seen](https://stranger.example/x.png) [run](javascript:document.title=1)",
            "[data](data:text/html,x) [vb](vbscript:x) <https://good.example/>",
            "<svg onload=document.title=1><style>*{display:none}</style>",
            f"<form action=/admin/><input name=x>{HOSTILE}",
            "```\n</code></pre><script>document.title='run'</script>\n```",
        ]
        await say(page, "echo " + "\n\n".join(lines))
        await becomes(page, "completed")
        said = page.locator(f"{LAST} >> .pg-text")
        await expect(said.locator("h4")).to_have_text("A title")
        await expect(said.locator("td strong")).to_have_text("bold")
        links = await said.locator("a").evaluate_all("all => all.map(one => [one.href, one.rel])")
        rel = "noopener noreferrer nofollow"
        addresses = ["https://stranger.example/x.png", "https://good.example/"]
        assert links == [[address, rel] for address in addresses]
        strange = "img, script, svg, style, form, input, iframe, [style], [id], [onload], [onerror]"
        assert await said.locator(strange).count() == 0
        assert await page.title() == "A2A host"

    async def test_of_an_answer_that_no_host_gives_is_text(self, page: Page) -> None:
        """An agent elsewhere, or a broken proxy, may answer anything: keys, urls, names of states."""
        odd: dict[str, Any] = {
            "id": HOSTILE,
            "contextId": HOSTILE,
            "status": {"state": HOSTILE, "message": {"parts": [{"data": {HOSTILE: HOSTILE}}]}},
            "artifacts": [
                {
                    "artifactId": HOSTILE,
                    "name": HOSTILE,
                    "parts": [
                        {"url": "javascript:document.title='run'", "filename": HOSTILE},
                        {"url": "data:text/html,x", "filename": "data"},
                        {"raw": "no base64!", "filename": HOSTILE},
                    ],
                }
            ],
        }
        await page.route(
            "**/a2a/1.0",
            lambda route: route.fulfill(json={"jsonrpc": "2.0", "id": 1, "result": {"task": odd}}),
        )
        await page.goto("/")
        await choose(page, "Response", "send")
        await say(page, "hello")
        await expect(page.locator(LAST)).to_contain_text("javascript:document.title")
        assert await page.locator(f"{LAST} >> a").count() == 0
        assert await page.locator("#playground :is(img, script, svg, iframe)").count() == 0
        assert await page.title() == "A2A host"

    async def test_of_a_form_is_text(self, page: Page) -> None:
        odd = {"title": HOSTILE, "description": HOSTILE, "type": [HOSTILE], "default": HOSTILE}
        properties = {HOSTILE: odd, "a": {**odd, "enum": [HOSTILE]}, "b": {"enum": 1, "type": 1}}
        properties["call"] = {"type": ["boolean", "object"]}
        form = {"type": "object", "title": HOSTILE, "properties": properties, "required": 1}
        calls = [{"id": "call", "tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}}, HOSTILE, None]
        parts = [{"data": {"form": form}}, {"data": {"calls": calls}}]
        status = {"state": "input-required", "message": {"parts": parts}}
        task = {"id": "1", "contextId": "1", "status": status}
        await page.route(
            "**/a2a/1.0",
            lambda route: route.fulfill(json={"jsonrpc": "2.0", "id": 1, "result": {"task": task}}),
        )
        await page.goto("/")
        await choose(page, "Response", "send")
        await say(page, "hello")
        await expect(page.locator("#pg-form .pg-field")).to_have_count(4)
        await expect(page.locator("#pg-form code")).to_contain_text("onerror")
        await expect(page.locator("#pg-form legend")).to_contain_text("onerror")
        assert await page.locator("#playground :is(img, script, svg, iframe)").count() == 0
        assert await page.title() == "A2A host"


class TestWithoutScripts:
    async def test_the_agents_and_lines_to_try_are_there(self, visit: Visit) -> None:
        page = await visit(java_script_enabled=False)
        await page.goto("/")
        await expect(page.locator("#playground")).to_be_hidden()
        await expect(page.locator("#demo")).to_be_visible()
        await expect(page.locator("#demo pre")).to_contain_text("curl -s")
