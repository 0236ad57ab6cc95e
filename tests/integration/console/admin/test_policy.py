"""Pages keep the policy they are sent with: nothing inline, nothing from elsewhere, in nobody's frame."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

import pytest
from django.test import Client

from a2a_push.models import Delivery
from a2a_tasks.models import ApiKey, Task
from tests.integration.console.admin.pages import everything, pages
from tests.integration.console.admin.policed import operator, places
from tests.support.thorough import THOROUGH

__all__ = ["operator", "places"]
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
    @pytest.fixture(autouse=True)
    def without_playground(self, settings: Any) -> None:
        """Its page shows files of agents, too (tests/integration/test_start_page.py)."""
        settings.A2A_PLAYGROUND = "0"

    def test_have_nothing_inline(self, admin_client: Client) -> None:
        everything()
        alike = () if THOROUGH else ("/history/", "/delete/", "?q=x")
        for page in (each for each in pages() if not each.endswith(alike)):
            kept(admin_client.get(page, follow=True))

    def test_that_ask_and_tell_have_not_either(self, admin_client: Client) -> None:
        everything()
        key, delivery = ApiKey.objects.get(), Delivery.objects.all()[0]
        picked = {"_selected_action": [key.pk]}
        asked = [
            *(
                ("/admin/a2a_tasks/apikey/", {"action": "rotate_selected", **picked, **more})
                for more in ({}, {"confirmed": "yes"})
            ),
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
        pieces = (
            "live/top/",
            "live/tab/",
            "change/?from=1",
            "change/?tab=facts",
            "change/?tab=json",
        )
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


def test_there_is_a_page_of_a_task(operator: None, places: list[str]) -> None:
    assert f"/admin/a2a_tasks/task/{Task.objects.get().pk}/change/" in places
