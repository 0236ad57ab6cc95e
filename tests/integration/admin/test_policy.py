"""Pages keep the policy they are sent with: nothing inline, nothing from elsewhere, in nobody's frame."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from playwright.async_api import ConsoleMessage, Page
from pytest_django.live_server_helper import LiveServer

from a2a_push.models import Delivery
from a2a_tasks.models import ApiKey, Task
from tests.integration.admin.pages import everything, pages
from tests.support.chromium import visiting

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


class Inline(HTMLParser):
    """What a strict policy keeps from working."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "style" or (tag == "script" and not said.get("src")):
            data = tag == "script" and said.get("type") == "application/json"
            self.found += [] if data else [f"<{tag}>"]
        self.found += [
            f"<{tag} {name}>" for name in said if name == "style" or name.startswith("on")
        ]
        for name in ("src", "href", "action", "formaction"):
            there = (said.get(name) or "").strip().lower()
            foreign = name == "src" and "//" in there
            self.found += [f"{name}={there}"] if foreign or there.startswith("javascript:") else []


def inline(text: str) -> list[str]:
    """What of it is in a page."""
    parser = Inline()
    parser.feed(text)
    return parser.found


def test_what_is_inline_is_found() -> None:
    text = (
        '<script>x</script><p style="a" onclick="b"><a href=" JavaScript:c"><img src=//x.example>'
    )
    assert len(inline(text)) == 5
    assert inline('<script src="/x.js"></script><script type="application/json">{}</script>') == []


def kept(answer: Any) -> None:
    """The answer is a page that keeps its policy."""
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy.pop("media-src", "'self'") == "'self'"  # pages with sounds
    assert policy == POLICY
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "camera=()" in answer.headers["Permissions-Policy"]
    assert inline(answer.content.decode()) == []


@pytest.mark.django_db
class TestPages:
    def test_have_nothing_inline(self, admin_client: Client) -> None:
        everything()
        for page in pages():
            kept(admin_client.get(page, follow=True))

    def test_that_ask_and_tell_have_not_either(self, admin_client: Client) -> None:
        everything()
        key, delivery = ApiKey.objects.get(), Delivery.objects.all()[0]
        picked = {"_selected_action": [key.pk]}
        asked = [
            ("/admin/a2a_tasks/apikey/", {"action": "rotate_selected", **picked}),
            ("/admin/a2a_tasks/apikey/add/", {"name": ""}),
            (f"/admin/a2a_push/delivery/{delivery.pk}/replay/", {}),
            (f"/admin/a2a_push/receiver/{delivery.receiver_id}/disable/", {"reason": "x"}),
        ]
        for page, said in asked:
            answer = admin_client.post(page, said)
            assert answer.status_code == 200
            kept(answer)

    def test_beside_those_of_tables_and_pieces_of_pages_have_not_either(
        self, admin_client: Client
    ) -> None:
        everything()
        task = Task.objects.get()
        base = f"/admin/a2a_tasks/task/{task.pk}/"
        pieces = ("json/", "header/", "tail/", "change/?markdown", "change/?from=1")
        for page in (*pieces, f"../../context/{task.context_id}/conversation/"):
            kept(admin_client.get(urljoin(base, page)))

    def test_for_strangers_have_not_either(self, client: Client, settings: Any) -> None:
        for page in ("/", "/admin/", "/admin/login/", "/nothing/here", "/.well-known/jwks.json"):
            kept(client.get(page, follow=True))
        settings.A2A_LOGIN_FAILURES = 1
        kept(Client(enforce_csrf_checks=True).post("/admin/login/", {}))
        answer = client.post("/admin/login/", {"username": "x", "password": "y"})
        assert answer.status_code == 429
        kept(answer)


@pytest.fixture
def operator(db: None) -> None:
    """Somebody who may sign in, and things to look at."""
    root = User.objects.create_superuser("root", password="correct horse")
    root.groups.add(Group.objects.create(name="tenant:acme"))
    everything()


#: What a browser says of a page that is not for anybody, such as the form of a table that nobody adds to.
REFUSED = "error: Failed to load resource: the server responded with a status of 40"


def _grave(page: Page, message: ConsoleMessage) -> list[str]:
    grave = message.type in {"error", "warning"}
    return [f"{page.url} {message.type}: {message.text}"] if grave else []


@pytest.mark.chromium
class TestInABrowser:
    async def test_no_page_breaks_its_policy_and_everything_works(
        self, operator: None, live_server: LiveServer, places: list[str]
    ) -> None:
        said: list[str] = []
        async with visiting() as page:
            page.on("console", lambda message: said.extend(_grave(page, message)))
            page.on("pageerror", lambda fault: said.append(f"{page.url}: {fault}"))
            await page.goto(f"{live_server.url}/admin/")
            await page.fill("#id_username", "root")
            await page.fill("#id_password", "correct horse")
            await page.click("[type=submit]")
            assert await page.inner_text("#content h1") == "Overview"
            for place in places:
                await page.goto(live_server.url + place)
            assert [line for line in said if REFUSED not in line] == []
            # The scripts of the admin do their work under it.
            await page.goto(f"{live_server.url}/admin/a2a_tasks/apikey/add/")
            await page.click("#calendarlink0")
            assert await page.is_visible("#calendarbox0")
            await page.click("#calendarbox0 .calendar td a >> nth=0")
            assert await page.input_value("#id_expires_at_0")
            await page.goto(f"{live_server.url}/admin/auth/group/add/")
            await page.click("#id_permissions_add_all, .selector-chooseall")
            await page.goto(f"{live_server.url}/admin/a2a_tasks/task/")
            await page.click("#action-toggle")
            assert await page.is_checked("input.action-select >> nth=0")
            badge = (
                "getComputedStyle(document.querySelector('.a2a-badge'), '::before').borderRadius"
            )
            assert await page.evaluate(badge) == "50%"
            assert [line for line in said if "Content Security Policy" in line] == []

    async def test_what_strangers_wrote_does_not_run(
        self, operator: None, live_server: LiveServer
    ) -> None:
        said: list[str] = []
        async with visiting() as page:
            page.on("console", lambda message: said.append(message.text))
            await page.goto(live_server.url)
            assert (
                await page.evaluate(
                    "getComputedStyle(document.querySelector('article')).borderTopWidth"
                )
                == "1px"
            )
            await page.evaluate(
                'document.body.innerHTML = \'<p style="color: red" id=x>x</p><img src=x onerror="document.title = 1">\''
            )
            assert (
                await page.evaluate("getComputedStyle(document.querySelector('#x')).color")
                != "rgb(255, 0, 0)"
            )
            assert await page.title() == "A2A host"
        assert any("Content Security Policy" in line for line in said)


@pytest.fixture
def places(operator: None) -> list[str]:
    """All pages there are for the operator."""
    return pages()


def test_there_is_a_page_of_a_task(operator: None, places: list[str]) -> None:
    assert f"/admin/a2a_tasks/task/{Task.objects.get().pk}/change/" in places
