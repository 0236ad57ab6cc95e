"""The host in projects of others: theirs stays as it was, and all of it works below the prefix."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.projects.project import LINES, PREFIX, Project, make_shop, make_stock
from tests.journeys.sdk import official, said

pytestmark = [pytest.mark.backend("sqlite"), pytest.mark.timeout(600)]
#: Requests of dialects before 1.0: path below the agent, method, parameters' message.
OLD = {
    "a2a/0.3": (
        "message/send",
        {
            "kind": "message",
            "role": "user",
            "parts": [{"kind": "text", "text": "old"}],
            "messageId": "1",
        },
    ),
    "a2a/0.2": (
        "message/send",
        {"role": "user", "parts": [{"kind": "text", "text": "old"}], "messageId": "2"},
    ),
    "a2a/0.1": ("tasks/send", {"role": "user", "parts": [{"type": "text", "text": "old"}]}),
}
CONSOLE = (
    *(
        "",
        "find/?q=support",
        "tables/",
        "usage/",
        "a2a_tasks/task/",
        "a2a_tasks/agentswitch/",
        "a2a_tasks/agentswitch/agent/support/",
    ),
    *("a2a_tasks/waiting/", "a2a_tasks/auditentry/", "a2a_tasks/apikey/", "a2a_push/delivery/"),
)


class Guest:
    """A project before and after the host came into it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        project.manage("migrate", "--verbosity", "0")
        self.session, self.user = project.sign_in()
        urls = [url.format(user=self.user) for url in project.pages]
        self.before = project.read(self.session, *urls)
        project.add_host()
        self.checked = project.manage("check", "--fail-level", "WARNING")
        self.missing = project.manage("makemigrations", "--check", "--dry-run")
        project.manage("migrate", "--verbosity", "0")
        self.after = project.read(self.session, *urls)


@pytest.fixture(scope="module", params=[make_stock, make_shop])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    """Each of the projects."""
    make: Callable[[Path], Project] = request.param
    return Guest(make(tmp_path_factory.mktemp("projects") / "project"))


@pytest.fixture(scope="module")
def url(guest: Guest) -> Iterator[str]:
    """The address of the host in the project, which ends in good order."""
    with guest.project.served() as (url, server):
        yield url
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0, server.transcript()


def test_it_takes_six_lines_at_most_and_the_apps_with_agents() -> None:
    assert sum(len(lines) for lines in LINES.values()) - 1 <= 6


def test_the_projects_own_pages_are_as_they_were(guest: Guest) -> None:
    assert len(guest.before) > 10
    assert {status for status, _, _ in guest.before.values()} <= {200, 302, 404}
    for path, page in guest.before.items():
        assert guest.after[path] == page, path


def test_neither_checks_nor_migrations_have_anything_to_say(guest: Guest) -> None:
    assert "no issues" in guest.checked
    assert "No changes" in guest.missing


def test_the_console_is_below_the_prefix(guest: Guest) -> None:
    pages = guest.project.read(guest.session, *(f"{PREFIX}/admin/{page}" for page in CONSOLE))
    for path, (status, headers, text) in pages.items():
        assert status == 200, path
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        links = re.findall(r'href="(/[^"]*)"', text)
        ours = [
            link
            for link in links
            if "a2a_" in link and not link.startswith(("/static/", "/assets/"))
        ]
        assert all(link.startswith(f"{PREFIX}/admin/") for link in ours), path


def test_strangers_sign_in_at_the_projects_own_form(guest: Guest, url: str) -> None:
    with httpx.Client(follow_redirects=True) as client:
        page = client.get(f"{url}/admin/")
    assert page.url.path in {"/admin/login/", "/office/login/"}
    assert page.url.params["next"] == f"{PREFIX}/admin/"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "GRPC"])
def test_the_published_client_talks_to_the_agent_as_its_card_says(url: str, binding: str) -> None:
    async def talk() -> None:
        async with official(url, binding) as client:
            task = await client.send("hello")
            assert said(*task.artifacts) == "hello"
            assert [event async for event in client.streaming.send_message(client.request("again"))]

    asyncio.run(talk())


@pytest.mark.parametrize("path", OLD)
def test_clients_of_older_dialects_are_answered(url: str, path: str) -> None:
    method, message = OLD[path]
    params = {"message": message, **({"id": "t1"} if method == "tasks/send" else {})}
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = httpx.post(f"{url}/agents/support/{path}", json=call).json()
    assert answer["result"]["status"]["state"] in {"completed", "working", "submitted"}, answer


def test_every_address_in_answers_has_the_prefix(url: str) -> None:
    card = httpx.get(f"{url}/.well-known/agent-card.json", headers={"A2A-Version": "1.0"}).json()
    for one in card["supportedInterfaces"]:
        assert one["url"].startswith(f"{url}/agents/") or one["protocolBinding"] == "GRPC"
    message = {"messageId": "f", "role": "ROLE_USER", "parts": [{"text": "file"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    sent = httpx.post(f"{url}/agents/support/", json=call, headers={"A2A-Version": "1.0"}).json()
    (part,) = (p for a in sent["result"]["task"]["artifacts"] for p in a["parts"] if "url" in p)
    assert part["url"].startswith(f"{url}/agents/support/files/")
    assert len(httpx.get(part["url"]).content) == 100_000


def test_nothing_of_the_host_is_beside_the_prefix(url: str) -> None:
    site = url.removesuffix(PREFIX)
    for path in (
        "/agents/",
        "/agents/support/",
        "/.well-known/agent-card.json",
        "/healthz",
        "/metrics",
    ):
        assert httpx.get(f"{site}{path}").status_code == 404
        assert httpx.get(f"{site}{path}").headers["content-type"].startswith("text/html")
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}


def test_the_playground_finds_agents_and_files_below_the_prefix(url: str) -> None:
    page = httpx.get(f"{url}/")
    assert page.status_code == 200
    assert 'id="playground"' in page.text
    files = re.findall(r'(?:src|href)="([^"]*\.(?:js|css))"', page.text)
    assert files
    for file in files:
        assert httpx.get(httpx.URL(url).join(file)).status_code == 200, file


def test_the_management_api_is_as_its_own_description_whatever_drf_is_set_to(
    guest: Guest, url: str
) -> None:
    made = guest.project.manage("api_keys", "create", "robot", "--scopes", "admin:read")
    key = re.search(r"\S{30,}", made)
    assert key is not None
    with httpx.Client(headers={"X-API-Key": key[0]}) as client:
        for _ in range(3):  # the shop lets strangers ask once a day
            tasks = client.get(f"{url}/api/v1/tasks")
        assert tasks.status_code == 200
        assert tasks.headers["content-type"] == "application/json"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", tasks.json()["items"][0]["created_at"])
        about = client.get(f"{url}/api/v1/openapi.json").json()
        assert about["servers"] == [{"url": PREFIX}]
        golden = Path(__file__).parents[2] / "tests/integration/console/api/golden/openapi.json"
        assert about["paths"].keys() == json.loads(golden.read_text())["paths"].keys()
        problem: dict[str, Any] = client.get(f"{url}/api/v1/tasks?nonsense=1").json()
        assert problem["code"] == "invalid"
