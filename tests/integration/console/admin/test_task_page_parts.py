"""Parts on the pages of tasks: each is shown as what it is, and whoever wrote it has nothing executed."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser
from typing import Any, cast

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.http import FileResponse
from django.test import Client

from a2a_console.admin.widgets import json_tree, markdown, parts
from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.json_tree import Allowance, tree
from a2a_console.admin.widgets.parts import Reading, ShownPart, join_texts, read, render_parts
from a2a_tasks.models import Artifact, Event, Message, StoredFile, Task
from a2a_tasks.protocol.values import Role, TaskState
from tests.support.console.admin.rows import add_artifact, add_status, make_task
from tests.support.rows import rolled_back, rows

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def one(part: dict[str, Any], **how: Any) -> ShownPart:
    """A part, as a page shows it."""
    reading = Reading(base="/t/1/", **how)
    (found,) = render_parts(read({"parts": [part]}, "event/5", reading), reading)
    return found


class TestKinds:
    @rows(
        ("part", "kind"),
        [
            ({"text": "x"}, "text"),
            ({"text": "x", "mediaType": "text/html"}, "text"),
            ({"text": "x", "mediaType": "Text/Markdown; charset=utf-8"}, "markdown"),
            ({"data": None}, "json"),
            ({"raw": "AAAA", "mediaType": "image/png"}, "image"),
            ({"raw": "AAAA", "mediaType": "image/svg+xml"}, "image"),
            ({"raw": "AAAA", "filename": "x.jpg"}, "image"),
            ({"raw": "AAAA", "mediaType": "audio/mpeg"}, "audio"),
            ({"raw": "AAAA", "mediaType": "application/pdf"}, "pdf"),
            ({"raw": "AAAA", "mediaType": "text/html"}, "file"),
            ({"raw": "AAAA", "mediaType": "image/x-unheard-of"}, "file"),
            ({"raw": "AAAA"}, "file"),
            ({"url": "https://example.com/a.png", "mediaType": "image/png"}, "link"),
            ({"url": f"a2a-file:{'0' * 32}", "mediaType": "image/png"}, "image"),
            ({"url": "a2a-file:../../x"}, "other"),
            ({}, "other"),
            ({"text": 7, "raw": {}, "url": []}, "other"),
        ],
    )
    def test_are_told_apart(self, part: dict[str, Any], kind: str) -> None:
        assert one(part).kind == kind

    @rows("body", [None, 7, [], {}, {"parts": 7}, {"parts": [7, None, "x"]}])
    def test_whatever_else_is_there_has_no_parts(self, body: Any) -> None:
        assert read(body, "event/1", Reading(base="/")) == []

    def test_bytes_are_had_by_place_and_number(self) -> None:
        shown = one({"raw": "AAAA", "mediaType": "image/png"})
        assert [shown.url, shown.save] == ["/t/1/parts/event/5/0/", "/t/1/parts/event/5/0/?save"]
        stored = one({"url": f"a2a-file:{'0' * 32}", "mediaType": "image/png"})
        assert stored.url == "/t/1/files/00000000-0000-0000-0000-000000000000/?show"

    def test_links_are_for_the_web_alone(self) -> None:
        assert one({"url": "HTTPS://example.com"}).url == "HTTPS://example.com"
        for url in (
            "javascript:alert(1)",
            " https://x",
            "data:text/html,x",
            "//x.example",
            "/admin/",
        ):
            assert one({"url": url}).url == ""

    def test_text_is_cut_and_says_so(self) -> None:
        shown = one({"text": "x" * 25_000})
        assert [len(shown.text), shown.size, shown.is_cut] == [10_000, 25_000, True]
        assert not one({"text": "x"}).is_cut

    def test_only_so_many_are_shown(self) -> None:
        body = {"parts": [{"text": "x"}] * 500}
        assert len(read(body, "event/1", Reading(base="/"))) == parts.MAX_COUNT

    def test_pieces_of_text_are_one_text(self) -> None:
        reading = Reading(base="/")
        pieces = [{"text": "for"}, {"text": "ty"}, {"data": 1}, {"text": "-two"}]
        shown = join_texts(read({"parts": pieces}, "event/1", reading), reading)
        assert [part.text for part in shown] == ["forty", "", "-two"]


ELSEWHERE = "https://example.com"


class Tags(HTMLParser):
    """The tags of a piece of HTML with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


class TestMarkdown:
    def test_is_rendered_where_it_is_said_to_be_markdown_or_asked_for(self) -> None:
        assert one({"text": "**x**"}).html is None
        assert one({"text": "**x**", "mediaType": "text/markdown"}).html == (
            "<p><strong>x</strong></p>\n"
        )
        assert one({"text": "**x**"}, all_markdown=True).html == "<p><strong>x</strong></p>\n"

    @rows(
        "text",
        [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](&#106;avascript:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "![x](https://example.com/spy.png)",
            "![x](/admin/logout/)",
            "[x](/admin/a2a_tasks/task/)",
            "[x](//example.com)",
            '[x](https://example.com "\\" onmouseover=alert(1)")',
            "<div style='position:fixed'>x</div>",
            "```js\n</code><script>alert(1)</script>\n```",
            "<svg><style><img src=x onerror=alert(1)>",
            "`<b>`",
        ],
    )
    def test_has_no_tag_and_no_address_that_does_anything(self, text: str) -> None:
        tags = Tags()
        tags.feed(markdown.render(text))
        assert tags.found
        for tag, attributes in tags.found:
            assert tag in markdown.TAGS
            assert set(attributes) <= {"href", "rel", "target"}
            assert attributes.get("href", ELSEWHERE).startswith(ELSEWHERE)

    def test_links_lead_away_and_say_nothing_of_where_from(self) -> None:
        html = markdown.render("[x](https://example.com)")
        assert 'href="https://example.com"' in html
        assert 'rel="noopener noreferrer nofollow"' in html
        assert 'target="_blank"' in html

    def test_too_much_of_it_stays_text(self) -> None:
        assert one({"text": "x"}, all_markdown=True, allowance=Allowance(markdown=0)).kind == "text"

    def test_can_be_nothing_but_marks(self) -> None:
        for text in ("*" * 10_000, "[" * 10_000, "> " * 5_000, "|" * 10_000, "`a" * 5_000):
            assert markdown.render(text)


class TestJson:
    def test_is_a_tree_whose_keys_and_values_are_text(self) -> None:
        html = tree({"<b>": ["<i>", 1, None, {}]}, Allowance())
        assert "<b>" not in html
        assert "<i>" not in html
        assert "&lt;b&gt;" in html
        assert "[4 items]" in html
        assert html.count("<details") == 2

    def test_says_what_is_too_deep_and_too_much(self) -> None:
        deep: Any = 1
        for _ in range(100):
            deep = [deep]
        assert "too deep for here" in tree(deep, Allowance())
        assert "… 900 more" in tree(list(range(1_000)), Allowance())
        assert len(tree([[["x" * 10_000] * 100] * 100] * 100, Allowance(nodes=300))) < 300_000
        assert tree({"a": 1}, Allowance(nodes=0)) == "…"

    def test_keys_cannot_turn_round_what_follows(self) -> None:
        html = tree({"\u202egpj": 1, "x" * 1_000: 2}, Allowance())
        assert "\u202e" not in html
        assert "[U+202E]gpj" in html
        assert "x" * (json_tree.KEY + 1) not in html


@rows(
    ("name", "seen"),
    [
        ("photo\u202egpj.exe", "photo[U+202E]gpj.exe"),
        ("a\nb\x00c\u200bd", "a[U+000A]b[U+0000]c[U+200B]d"),
        ("\ud800", "?"),
        ("é 漢 ع", "é 漢 ع"),
        ("x" * 500, "x" * 200 + "…"),
    ],
)
def test_names_are_what_they_look_like(name: str, seen: str) -> None:
    assert escape_name(name) == seen


def task_with(*said: dict[str, Any]) -> Task:
    """A task whose first message has these parts."""
    task = make_task(state=TaskState.WORKING)
    body = json.dumps({"messageId": "m", "role": Role.USER.value, "parts": said})
    Message.objects.filter(task=task, number=1).update(body=body)
    return task


def had(client: Client, task: Task, place: str, query: str = "") -> FileResponse:
    answer = client.get(f"/admin/a2a_tasks/task/{task.pk}/parts/{place}/{query}")
    return cast("FileResponse", answer)


def content(answer: FileResponse) -> bytes:
    return b"".join(cast("Any", answer).streaming_content)


@pytest.mark.django_db
class TestAddressesOfParts:
    @rows(
        ("part", "media_type", "is_shown"),
        [
            ({"raw": encoded("x"), "mediaType": "image/png"}, "image/png", True),
            ({"raw": encoded(SVG), "mediaType": "image/svg+xml"}, "image/svg+xml", True),
            ({"raw": encoded("x"), "mediaType": "audio/ogg"}, "audio/ogg", True),
            ({"raw": encoded("x"), "mediaType": "application/pdf"}, "application/pdf", False),
            ({"raw": encoded(SVG), "mediaType": "text/html"}, "application/octet-stream", False),
            (
                {"raw": encoded(SVG), "mediaType": "image/png\r\nX: y"},
                "application/octet-stream",
                False,
            ),
            ({"raw": encoded("x")}, "application/octet-stream", False),
            ({"text": SVG, "mediaType": "text/html"}, "application/octet-stream", False),
            ({"data": {"a": 1}}, "application/octet-stream", False),
        ],
        within=rolled_back,
    )
    def test_run_nothing_whatever_is_there(
        self, admin_client: Client, part: dict[str, Any], media_type: str, *, is_shown: bool
    ) -> None:
        answer = had(admin_client, task_with(part), "event/1/0")
        assert answer["Content-Type"] == media_type
        assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"
        assert answer["X-Content-Type-Options"] == "nosniff"
        disposition = answer["Content-Disposition"] if not is_shown else "attachment"
        assert disposition.startswith("attachment")

    def test_give_the_bytes_of_messages_events_artifacts_and_the_status(
        self, admin_client: Client
    ) -> None:
        task = task_with({"text": "x"}, {"raw": encoded("of a message"), "filename": "a b.bin"})
        add_status(task, TaskState.INPUT_REQUIRED, "of an event")
        add_artifact(task, "plan", "of an artifact")
        said = json.dumps({"parts": [{"text": "of the status"}]})
        Task.objects.filter(pk=task.pk).update(status_message=said)
        assert content(had(admin_client, task, "event/1/1")) == b"of a message"
        assert content(had(admin_client, task, "event/3/0")) == b"of an event"
        assert content(had(admin_client, task, "event/4/0")) == b"of an artifact"
        assert content(had(admin_client, task, "artifact/0/0")) == b"of an artifact"
        assert content(had(admin_client, task, "status/0/0")) == b"of the status"

    def test_save_a_picture_if_asked_to_under_a_name_that_cannot_lie(
        self, admin_client: Client
    ) -> None:
        name = 'x"\r\n\u202egpj.png'
        task = task_with({"raw": encoded("x"), "mediaType": "image/png", "filename": name})
        said = had(admin_client, task, "event/1/0", "?save")["Content-Disposition"]
        assert said.startswith("attachment")
        assert "\n" not in said
        assert "%E2%80%AE" not in said

    @rows(
        "place",
        ["event/1/7", "event/99/0", "artifact/0/0", "status/0/0", "secret/1/0", "event/1/1"],
        within=rolled_back,
    )
    def test_are_not_there_for_what_is_not_there(self, admin_client: Client, place: str) -> None:
        task = task_with({"text": "x"}, {"raw": "!"})
        assert had(admin_client, task, place).status_code == 404

    @rows("body", ["", "{", "[" * 5000, "7", '{"parts":{}}', '{"parts":[7]}'], within=rolled_back)
    def test_survive_whatever_is_stored(self, admin_client: Client, body: str) -> None:
        task = task_with({"text": "x"})
        Message.objects.filter(task=task).update(body=body)
        assert had(admin_client, task, "event/1/0").status_code == 404

    def test_of_files_show_pictures_and_save_everything_else(self, admin_client: Client) -> None:
        task = make_task()
        found = {}
        for media_type in ("image/png", "text/html"):
            name = storages["a2a_files"].save(f"part-{task.pk}", ContentFile(SVG.encode()))
            about = {"size": 9, "sha256": "0" * 64, "name": name, "media_type": media_type}
            file = StoredFile.objects.create(task=task, agent=task.agent, **about)
            found[media_type] = f"/admin/a2a_tasks/task/{task.pk}/files/{file.pk}/?show"
        picture, html = (cast("FileResponse", admin_client.get(url)) for url in found.values())
        assert [content(picture), content(html)] == [SVG.encode()] * 2
        assert picture["Content-Type"] == "image/png"
        assert html["Content-Type"] == "application/octet-stream"
        assert html["Content-Disposition"].startswith("attachment")
        assert html["Content-Security-Policy"] == "sandbox; default-src 'none'"


@pytest.mark.django_db
class TestOnThePage:
    def test_pictures_are_shown_although_their_message_is_long(self, admin_client: Client) -> None:
        task = task_with({"raw": "A" * 80_000, "mediaType": "image/png", "filename": "p.png"})
        body = admin_client.get(f"/admin/a2a_tasks/task/{task.pk}/change/").text
        assert f'<img src="/admin/a2a_tasks/task/{task.pk}/parts/event/1/0/" alt="p.png"' in body
        assert len(body) < 110_000

    def test_pictures_in_artifacts_too(self, admin_client: Client) -> None:
        task = make_task()
        add_artifact(task, "plan", "x")
        whole = {"artifactId": "plan", "parts": [{"raw": "A" * 80_000, "mediaType": "image/png"}]}
        Artifact.objects.filter(task=task).update(body=json.dumps(whole))
        Event.objects.filter(task=task, number=2).update(body=json.dumps({"artifact": whole}))
        body = admin_client.get(f"/admin/a2a_tasks/task/{task.pk}/change/").text
        assert f"/{task.pk}/parts/artifact/0/0/" in body
        assert f"/{task.pk}/parts/event/2/0/" in body

    def test_text_is_markdown_in_the_conversation_and_as_it_is_in_the_timeline(
        self, admin_client: Client
    ) -> None:
        task = task_with({"text": "so **loud**"}, {"text": "so **dry**", "mediaType": "text/plain"})
        body = admin_client.get(f"/admin/a2a_tasks/task/{task.pk}/change/").text
        upper, _, lower = body.partition('id="a2a-tab"')
        assert "so <strong>loud</strong>" in upper
        assert "so **dry**" in upper
        assert "so **loud**" in lower

    def test_a_page_with_sounds_may_play_its_own(self, admin_client: Client) -> None:
        task = task_with({"raw": "AAAA", "mediaType": "audio/mpeg"})
        for page in (
            f"/admin/a2a_tasks/task/{task.pk}/change/",
            f"/admin/a2a_tasks/context/{task.context_id}/conversation/",
        ):
            answer = admin_client.get(page)
            assert "<audio controls" in answer.text
            assert "media-src 'self'" in answer["Content-Security-Policy"]
