"""The page at `/`: what a person finds there."""

from __future__ import annotations

import html
import json
import re
import shlex
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from django.test import Client

from a2a_tasks.agents import registry

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db  # Django looks for the user's session


@pytest.fixture(autouse=True)
def plain(settings: Settings) -> None:
    settings.A2A_PLAYGROUND = "0"


def page(**headers: str) -> str:
    """Read the page as text."""
    response = Client().get("/", headers={"host": "localhost:8000", **headers})
    assert response.status_code == 200
    return html.unescape(response.content.decode())


class TestTheFrontPage:
    def test_lists_every_agent_with_its_card_and_skills(self) -> None:
        text = page()
        for agent in registry.agents():
            assert agent.name in text
            assert f"http://localhost:8000/agents/{agent.slug}/.well-known/agent-card.json" in text
            assert all(skill.name in text for skill in agent.skills)

    def test_begins_with_the_default_agent(self, settings: Settings) -> None:
        settings.A2A_DEFAULT_AGENT = "tables"
        slugs = re.findall(r'<article id="(.*?)"', page())
        assert slugs[0] == "tables"
        assert sorted(slugs) == sorted(agent.slug for agent in registry.agents())

    def test_leaves_out_agents_that_are_off(self, settings: Settings) -> None:
        settings.A2A_DISABLED_AGENTS = "tables,bare,strict"
        assert 'id="tables"' not in page()

    def test_has_a_shell_command_for_each_agent(self, settings: Settings) -> None:
        settings.A2A_DISABLED_AGENTS = ""
        lines = re.findall(r"<pre.*?>(.*?)</pre>", page(), flags=re.DOTALL)
        assert len(lines) == len(registry.agents())
        for line in lines:
            words = shlex.split(line)
            assert words[:2] == ["curl", "-s"]
            assert json.loads(words[-1])["params"]["message"]["role"] == "ROLE_USER"

    def test_tells_the_headers_a_strict_agent_demands(self, settings: Settings) -> None:
        settings.A2A_DISABLED_AGENTS = ""
        assert "A2A-Extensions: urn:a2a:tck:required-extension" in page()

    def test_links_to_the_admin(self) -> None:
        assert 'href="/admin/"' in page()

    def test_has_scripts_for_the_playground_alone(self, settings: Settings) -> None:
        assert "<script" not in page()
        settings.A2A_PLAYGROUND = "1"
        assert "<script" in page()
        assert 'id="playground"' in page()

    def test_lets_the_playground_show_files_of_agents_as_data_alone(
        self, settings: Settings
    ) -> None:
        def policy() -> dict[str, str]:
            said = Client().get("/", headers={"host": "localhost"})["Content-Security-Policy"]
            return dict(part.split(" ", 1) for part in said.split("; "))

        without = policy()
        settings.A2A_PLAYGROUND = "1"
        shown = {"img-src": "'self' data:", "media-src": "data:", "frame-src": "data:"}
        assert policy() == {**without, **shown}

    def test_shows_the_agents_to_those_without_scripts_beside_the_playground(
        self, settings: Settings
    ) -> None:
        settings.A2A_PLAYGROUND = "1"
        text = page()
        assert '<section id="playground" class="pg" hidden' in text
        assert '<details id="agents" open>' in text
        assert '<article id="demo"' in text

    def test_offers_the_console_to_staff_alone(
        self, settings: Settings, admin_client: Client, client: Client
    ) -> None:
        settings.A2A_PLAYGROUND = "1"
        for visitor, link in ((admin_client, "/admin/"), (client, "")):
            text = visitor.get("/", headers={"host": "localhost"}).content.decode()
            assert f'data-console="{link}"' in text

    def test_names_the_public_url_if_there_is_one(self, settings: Settings) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com/"
        assert "https://agents.example.com/agents/demo/" in page()

    def test_says_when_credentials_are_asked_for(self, settings: Settings) -> None:
        settings.A2A_ANONYMOUS = "1"
        assert "credentials" not in page()
        settings.A2A_ANONYMOUS = "0"
        assert "credentials" in page()

    def test_refuses_a_host_name_that_is_not_served(self) -> None:
        assert Client().get("/", headers={"host": "evil.example"}).status_code == 400

    def test_is_only_read(self) -> None:
        assert Client().post("/", headers={"host": "localhost"}).status_code == 405


def test_browsers_are_given_a_picture() -> None:
    answer = Client().get("/favicon.ico", headers={"host": "localhost:8000"})
    assert (answer.status_code, answer["content-type"]) == (200, "image/svg+xml")
    picture = ElementTree.fromstring(answer.content)  # noqa: S314 - our own
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"


class TestPagesOfAgents:
    def test_an_agent_has_a_page_with_its_skills_and_a_command(self) -> None:
        answer = Client().get("/agents/demo/")
        assert answer.status_code == 200
        text = html.unescape(answer.content.decode())
        demo = registry.find("demo")
        assert demo is not None
        assert all(skill.name in text for skill in demo.skills)
        assert "curl -s" in text
        assert 'id="tables"' not in text

    def test_all_agents_have_one(self) -> None:
        text = Client().get("/agents/").content.decode()
        assert all(f'id="{agent.slug}"' in text for agent in registry.agents())

    def test_a_misspelt_agent_lists_those_that_exist(self) -> None:
        answer = Client().get("/agents/dmeo/")
        assert answer.status_code == 404
        assert "/agents/demo/" in answer.content.decode()

    def test_an_agent_that_is_granted_to_some_does_not_exist(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        demo = registry.find("demo")
        monkeypatch.setattr(demo, "grants", "listed", raising=False)
        hidden, nobody = (Client().get(f"/agents/{name}/") for name in ("demo", "nobody"))
        assert hidden.status_code == nobody.status_code == 404
        assert hidden.content == nobody.content
        assert b"/agents/demo/" not in hidden.content
