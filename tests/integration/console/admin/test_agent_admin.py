"""The pages of agents: how each does, and switching, which is asked before it stops anybody's work."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from a2a_console.statistics import reports
from a2a_tasks.access import grants, switch_cache
from a2a_tasks.agents import registry
from a2a_tasks.agents.declaration import declare
from a2a_tasks.models import AgentSwitch, AuditEntry, Context, Run, Task
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import switches, versions
from a2a_tasks.store.switches import SwitchState
from tests.integration.store.test_workers import beat
from tests.support.console.admin.people import SignIn
from tests.support.console.admin.rows import add_run, add_usage, make_task
from tests.support.ended_tasks import make_ended
from tests.support.rows import rolled_back, rows
from tests.support.store.world import accepted

pytestmark = pytest.mark.django_db

LIST, DEMO = "/admin/a2a_tasks/agentswitch/", "/admin/a2a_tasks/agentswitch/agent/demo/"


@pytest.fixture(autouse=True)
def unswitched() -> Iterator[None]:
    """Nothing stays switched."""
    switch_cache.forget()
    yield
    switch_cache.forget()


def post(client: Client, do: str, *, yes: bool = False, **said: Any) -> Any:
    """Press a button of the page, and answer yes if told so."""
    confirmed = {"confirmed": "yes"} if yes else {}
    return client.post(f"{DEMO}set/", {"do": do, **said, **confirmed}, follow=True)


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


def ended(
    state: TaskState = TaskState.COMPLETED,
    *,
    ago: float = 60,
    took: float = 1.0,
    agent: str = "demo",
) -> Task:
    return make_ended(state, ago=datetime.timedelta(seconds=ago), took=took, agent=agent)


class TestList:
    def test_every_agent_with_its_state_its_load_and_its_health(self, admin_client: Client) -> None:
        ended()
        ended(TaskState.FAILED)
        ended(TaskState.REJECTED)
        ended(ago=4000)
        add_run(make_task("waits"))
        beat(agents={"demo": "1.0.0"})
        beat("there:2", agents={"demo": "2.0.0"})
        switches.limit("demo", 7)
        answer = admin_client.get(LIST)
        (demo,) = [one for one in answer.context["statuses"] if one.agent.slug == "demo"]
        assert demo.state == "on"
        assert (demo.statistics.queued, demo.statistics.running) == (1, 0)
        assert (demo.statistics.ended, demo.statistics.failed) == (3, 1)
        reports.forget()
        (line,) = admin_client.get("/admin/").context["page"].report.agents
        assert line == demo.statistics
        assert (len(demo.workers), demo.versions) == (2, {"1.0.0": 1, "2.0.0": 1})
        assert {one.agent.slug for one in answer.context["statuses"]} == set(registry.slugs())
        assert "3 ended" in text(answer)

    def test_an_agent_without_a_worker_is_not_shown_as_well(self, admin_client: Client) -> None:
        beat(queues=["night"])
        assert 'a2a-broken">on, no worker' in text(admin_client.get(LIST))
        beat(agents={"demo": "1.0.0"})
        assert "no worker" not in text(admin_client.get(LIST))

    def test_asks_the_same_few_queries_however_much_there_is(self, admin_client: Client) -> None:
        ended()
        with CaptureQueriesContext(connection) as few:
            admin_client.get(LIST)
        for n in range(2, 20):
            ended()
            beat(f"there:{n}")
        switches.limit("demo", 7)
        with CaptureQueriesContext(connection) as many:
            admin_client.get(LIST)
        assert len(many) <= len(few) <= 13

    def test_who_sees_one_tenant_sees_no_agents(self, sign_in: SignIn) -> None:
        assert sign_in("view_agentswitch").get(LIST).status_code == 403


class TestPage:
    def test_its_cards_are_valid_and_signed_by_a_key_of_this_host(
        self, admin_client: Client, settings: Any
    ) -> None:
        settings.A2A_PUBLIC_URL = "https://agents.example.com"
        cards = {card.label: card for card in admin_client.get(DEMO).context["cards"]}
        assert [card.flaws for card in cards.values()] == [[]] * len(cards)
        assert {label for label, card in cards.items() if card.signature == "signed"} == {
            "1.0",
            "1.0 draft",
            "1.0 and 0.3 in one",
            "0.3",
        }
        assert "https://agents.example.com/agents/demo" in cards["1.0"].text

    def test_says_why_cards_are_not_signed(self, admin_client: Client, settings: Any) -> None:
        settings.A2A_PUBLIC_URL = ""
        (card, *_) = admin_client.get(DEMO).context["cards"]
        assert (card.signature, "A2A_PUBLIC_URL" in card.note) == ("unsigned", True)

    def test_who_has_access_and_which_processes_run_it(self, admin_client: Client) -> None:
        grants.grant("demo", "key:abc", "use")
        grants.grant("other", "key:def", "use")
        beat(slots=0)
        beat("runs:1")
        page = text(admin_client.get(DEMO))
        assert "key:abc" in page
        assert "key:def" not in page
        assert "runs:1" in page
        assert "here:1" not in page

    def test_warns_where_nobody_runs_it(self, admin_client: Client) -> None:
        assert "No live worker" in text(admin_client.get(DEMO))

    def test_has_the_figures_of_its_newest_tasks(self, admin_client: Client) -> None:
        for seconds in (1, 2, 3, 40):
            ended(took=seconds)
        ended(TaskState.FAILED)
        ended(TaskState.FAILED, agent="tables")
        figures = admin_client.get(DEMO).context["figures"]
        assert (figures.ended, figures.failed, figures.error_rate) == (5, 1, "20.0 %")
        assert (figures.p50, figures.p95) == ("2.0 s", "3.0 s")

    def test_groups_what_its_failures_say(self, admin_client: Client) -> None:
        for number in (5, 17):
            task = ended(TaskState.FAILED)
            Task.objects.filter(pk=task.pk).update(status_text=f"<b>{number} is odd")
        page = admin_client.get(DEMO)
        assert [(one.words, one.count) for one in page.context["failures"]] == [("<b>17 is odd", 2)]
        assert "&lt;b&gt;17 is odd" in page.text

    def test_tells_what_it_cost_today(self, admin_client: Client) -> None:
        add_usage(ended(), input_tokens=10, cost="0.14", currency="USD")
        assert "0.14 USD" in text(admin_client.get(DEMO))

    def test_of_no_agent_is_none(self, admin_client: Client) -> None:
        assert admin_client.get("/admin/a2a_tasks/agentswitch/agent/nobody/").status_code == 404

    def test_a_row_of_the_log_leads_there(self, admin_client: Client) -> None:
        switches.limit("demo", 7)
        row = AgentSwitch.objects.get()
        assert admin_client.get(f"{LIST}{row.pk}/change/").url == DEMO  # type: ignore[attr-defined]


class TestSwitching:
    @rows(
        ("do", "said", "action"),
        [
            ("drain", {}, "agent.drain"),
            ("disable", {}, "agent.disable"),
            ("limit", {"most": "0"}, "agent.limit"),
            ("queue", {"queue": "nowhere"}, "agent.queue"),
        ],
        within=rolled_back,
    )
    def test_what_stops_work_is_asked_first_then_done_and_told(
        self, admin_client: Client, do: str, said: dict[str, Any], action: str
    ) -> None:
        asked = post(admin_client, do, reason="a deploy", **said)
        assert "a2a-confirm" in text(asked)
        assert not AgentSwitch.objects.exists()
        post(admin_client, do, yes=True, reason="a deploy", **said)
        entry = AuditEntry.objects.get(object="demo")
        user = User.objects.get()
        assert (entry.action, entry.actor) == (action, f"staff:{user.pk}")
        assert "a deploy" in entry.detail
        assert AgentSwitch.objects.get().reason == "a deploy"

    def test_what_stops_nothing_is_done_at_once(self, admin_client: Client) -> None:
        beat(queues=["night"])
        switches.set_state("demo", SwitchState.OFF)
        assert "The agent is enabled" in text(post(admin_client, "enable"))
        assert "limited to 5" in text(post(admin_client, "limit", most="5"))
        assert "are unlimited" in text(post(admin_client, "limit", most=""))
        assert "go to the queue night" in text(post(admin_client, "queue", queue="night"))
        row = switches.row_of("demo")
        assert (row.state, row.max_running, row.queue) == ("on", None, "night")

    def test_what_is_so_already_is_said_to_be(self, admin_client: Client) -> None:
        assert "Nothing changed: it is so already." in text(post(admin_client, "enable"))
        assert not AuditEntry.objects.filter(object="demo").exists()

    @rows(
        ("do", "said"),
        [("limit", {"most": "-1"}), ("queue", {"queue": "a b"}), ("x", {})],
        within=rolled_back,
    )
    def test_nonsense_is_refused(self, admin_client: Client, do: str, said: dict[str, Any]) -> None:
        answer = post(admin_client, do, yes=True, **said)
        assert [message.level_tag for message in answer.context["messages"]] == ["error"]
        assert not AuditEntry.objects.filter(object="demo").exists()

    def test_who_may_look_may_not_switch(self, sign_in: SignIn) -> None:
        bob = sign_in("view_agentswitch", "see_all_tenants")
        assert 'value="disable"' not in text(bob.get(DEMO))
        assert post(bob, "disable", yes=True).status_code == 403
        assert not AgentSwitch.objects.exists()

    def test_an_agent_that_the_settings_have_off_stays_off(
        self, admin_client: Client, settings: Any
    ) -> None:
        settings.A2A_DISABLED_AGENTS = "demo"
        assert "cannot override the setting" in text(admin_client.get(DEMO))


class TestVersions:
    def announce(self, *names: str) -> None:
        """Let an environment have these versions of the demo agent, too."""
        own = registry.find_own("demo")
        assert own is not None
        for name in names:
            card = msgspec.json.encode(msgspec.structs.replace(declare(own), version=name))
            versions.announce(card, environment="adk", host="0.1.0")

    def act(self, admin_client: Client, **form: Any) -> str:
        """Do this on the page; the page that follows."""
        answer = admin_client.post(f"{LIST}agent/demo/set/", form, follow=True)
        assert answer.status_code == 200
        return text(answer)

    def test_stand_beside_each_other_with_their_error_rates(self, admin_client: Client) -> None:
        self.announce("2.0")
        ended()
        make_task("newer", state=TaskState.FAILED, context_id="newer")
        Context.objects.filter(public_id="newer").update(version="2.0")
        lines = admin_client.get(DEMO).context["agent_versions"]
        assert {row.version: made.error_rate for row, made in lines} == {
            "1.0.0": "0.0 %",
            "2.0": "100.0 %",
        }

    def test_an_agent_without_versions_has_no_table_of_them(self, admin_client: Client) -> None:
        assert "Unfinished runs" not in text(admin_client.get(f"{LIST}agent/demo/"))

    def test_a_version_serves_and_returns_after_a_question_each(self, admin_client: Client) -> None:
        self.announce("2.0", "3.0")
        beat(queues=["demo@2.0"])
        asked = self.act(admin_client, do="serve", version="2.0")
        assert "All new conversations go to version 2.0 at once" in asked
        assert "No live worker" not in asked
        assert switches.of("demo").version == ""
        page = self.act(admin_client, do="serve", version="2.0", confirmed="yes")
        assert "New conversations go to version 2.0." in page
        assert "<dt>Environment</dt><dd>adk</dd>" in page
        assert switches.of("demo").version == "2.0"
        page = self.act(admin_client, do="canary", version="3.0", percent="12.5")
        assert "canary, 12.5 %" in page
        assert "the canary ends" in self.act(admin_client, do="rollback")
        page = self.act(admin_client, do="rollback", confirmed="yes")
        assert "The canary has ended." in page
        assert "Roll back to 1.0.0 …" in page
        self.act(admin_client, do="rollback", confirmed="yes")
        assert switches.of("demo").version == ""

    def test_a_second_click_does_not_undo_a_roll_back(self, admin_client: Client) -> None:
        self.announce("2.0", "3.0")
        asked = self.act(admin_client, do="serve", version="2.0")
        assert "No live worker has version 2.0." in asked
        self.act(admin_client, do="serve", version="2.0", confirmed="yes")
        self.act(admin_client, do="canary", version="3.0", percent="10")
        page = text(admin_client.get(DEMO))
        (seen,) = re.findall(r'name="seen" value="([^"]*)"', page)
        self.act(admin_client, do="rollback", seen=seen, confirmed="yes")
        assert "have changed since you opened the page" in self.act(
            admin_client, do="rollback", seen=seen, confirmed="yes"
        )
        assert switches.of("demo").version == "2.0"

    @pytest.mark.parametrize(
        ("form", "told"),
        [
            ({"do": "move", "version": "2.0", "confirmed": "yes"}, "Name the version"),
            ({"do": "move", "version": "2.0", "to": "2.0", "confirmed": "yes"}, "there already"),
            ({"do": "serve", "version": "7"}, "The host has no version"),
            ({"do": "canary", "version": "2.0", "percent": "many"}, "Enter a share from 0 to 100"),
            ({"do": "canary", "version": "2.0", "percent": "101"}, "from 0 to 100, in percent"),
            ({"do": "rollback"}, "Nothing changed"),
        ],
    )
    def test_what_is_not_possible_is_told(
        self, form: dict[str, str], told: str, admin_client: Client
    ) -> None:
        self.announce("2.0")
        assert told in self.act(admin_client, **form)
        assert switches.of("demo").version == ""

    def test_conversations_are_moved_after_a_question(self, admin_client: Client) -> None:
        self.announce("2.0")
        accepted(queue="demo@2.0", companions=(versions.pin("2.0"),))
        page = self.act(admin_client, do="move", version="2.0", to="1.0.0")
        assert "Move the conversations of version 2.0 to 1.0.0?" in page
        self.act(admin_client, do="move", version="2.0", to="1.0.0", confirmed="yes")
        assert Run.objects.get().queue == "agents"
        assert Context.objects.get().version == ""

    def test_an_announced_agent_alone_has_a_page(self, admin_client: Client) -> None:
        own = registry.find_own("demo")
        assert own is not None
        card = msgspec.structs.replace(declare(own), slug="elsewhere", version="2.0")
        versions.announce(msgspec.json.encode(card), environment="adk", host="0.1.0")
        page = text(admin_client.get(f"{LIST}agent/elsewhere/"))
        assert "No live worker serves its queue elsewhere@2.0" in page
        assert "<dt>Environment</dt><dd>adk</dd>" in page
        assert "elsewhere" in text(admin_client.get(LIST))
