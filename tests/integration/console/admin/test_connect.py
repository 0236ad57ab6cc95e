"""The page Connect, and the same lines on the page of an agent for browsers."""

from __future__ import annotations

import html
import json
import re

import pytest
import yaml
from django.test import Client
from pytest_django import Settings

from tests.support.console.admin.people import SignIn

pytestmark = pytest.mark.django_db
DOORS = "mcp, openai, ag-ui, catalog"
HERE = "http://testserver"


def read_blocks(page: str) -> dict[str, str]:
    """The texts to paste, by their names."""
    found = re.findall(r'<pre tabindex="0" aria-label="([^"]+)">(.*?)</pre>', page, re.DOTALL)
    return {name: html.unescape(text) for name, text in found}


class TestThePage:
    def test_has_lines_for_each_door_with_the_addresses_of_this_host(
        self, admin_client: Client, settings: Settings
    ) -> None:
        settings.A2A_DOORS, settings.A2A_API_KEY_HEADER = DOORS, "X-Key"
        blocks = read_blocks(admin_client.get("/admin/connect/", {"agent": "demo"}).text)
        code = json.loads(blocks["VS Code"])["servers"]["demo"]
        assert code["url"] == f"{HERE}/agents/demo/mcp"
        assert code["headers"] == {"X-Key": "${input:a2a-key}"}
        desktop = json.loads(blocks["Claude Desktop"])["mcpServers"]["demo"]
        assert f"{HERE}/agents/demo/mcp" in desktop["args"]
        chat = yaml.safe_load(blocks["LibreChat"])["endpoints"]["custom"][0]
        assert (chat["baseURL"], chat["models"]["default"]) == (f"{HERE}/v1", ["demo"])
        compile(blocks["openai for Python"], "pasted", "exec")
        assert f"{HERE}/agents/demo/ag-ui" in blocks["@ag-ui/client"]
        assert blocks["Address of the catalog"] == f"{HERE}/.well-known/ai-catalog.json"

    def test_says_how_a_closed_door_is_opened(
        self, admin_client: Client, settings: Settings
    ) -> None:
        settings.A2A_DOORS = "openai"
        page = admin_client.get("/admin/connect/").text
        assert "A2A_DOORS=mcp" in page
        assert "A2A_DOORS=openai" not in page
        assert read_blocks(page).keys() == {
            "Address of the card",
            "openai for Python",
            "Open WebUI",
            "LibreChat",
        }

    def test_takes_the_agent_of_the_root_for_one_that_is_not_there(
        self, admin_client: Client
    ) -> None:
        page = admin_client.get("/admin/connect/", {"agent": "<b>nobody</b>"}).text
        assert f"{HERE}/agents/demo/.well-known/agent-card.json" in page
        assert "nobody" not in page

    def test_is_for_those_who_may_view_agents(self, sign_in: SignIn) -> None:
        page = sign_in("view_agentswitch", "see_all_tenants").get("/admin/connect/")
        assert page.status_code == 200
        assert "Create a key" not in page.text

    def test_is_refused_to_others(self, sign_in: SignIn) -> None:
        assert sign_in("view_task").get("/admin/connect/").status_code == 403

    def test_is_linked_from_the_page_of_an_agent(self, admin_client: Client) -> None:
        page = admin_client.get("/admin/a2a_tasks/agentswitch/agent/demo/").text
        assert '/admin/connect/?agent=demo"' in page


def test_the_page_for_browsers_has_the_lines_if_a_door_is_open(
    client: Client, settings: Settings
) -> None:
    about = {"accept": "text/html"}
    closed = client.get("/agents/demo/", headers=about)
    settings.A2A_DOORS = "mcp"
    blocks = read_blocks(client.get("/agents/demo/", headers=about).text)
    assert "Claude Code" not in read_blocks(closed.text)
    assert f"{HERE}/agents/demo/mcp" in blocks["Claude Code"]
