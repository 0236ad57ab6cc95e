"""Announced versions of agents in the store: who may announce what, what is served, and where conversations go."""

from __future__ import annotations

import datetime
from functools import partial
from typing import Any

import msgspec
import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.agents import Skill
from a2a_tasks.agents.declaration import Declaration, UnfitManifest, sign
from a2a_tasks.models import (
    PARKED,
    AgentVersion,
    AuditEntry,
    Context,
    Run,
    RunStatus,
    Task,
    Worker,
)
from a2a_tasks.protocol.errors import Overloaded
from a2a_tasks.store import switches, versions, workers
from a2a_tasks.store.accept import accept_many
from a2a_tasks.store.announcements import find_fault
from a2a_tasks.store.replies import reply
from a2a_tasks.store.versions import Pinned
from a2a_tasks.store.workers import Beat, WorkerKind
from tests.support.store.world import ALICE, BOB, accepted, at_once, claim, new

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("stack")]
ROUNDS = 12


def card(version: str = "1.0", **members: Any) -> bytes:
    """The declaration of the agent `demo` of another environment."""
    made = Declaration(
        slug="demo",
        name="Demo",
        description="Another demo.",
        version=version,
        skills=(Skill("say", "Say", "Says it", ["say"]),),
        default_input_modes=("text/plain",),
        default_output_modes=("text/plain",),
    )
    return msgspec.json.encode(msgspec.structs.replace(made, **members))


def announce(version: str = "1.0", environment: str = "adk", **about: Any) -> None:
    """Announce this version, with any card. It was long ago, unless it is `now`."""
    signature, host = about.pop("signature", ""), about.pop("host", "0.1.0")
    now = about.pop("now", False)
    versions.announce(
        card(version, **about), environment=environment, host=host, signature=signature
    )
    if not now:
        AgentVersion.objects.update(announced_at=Now() - datetime.timedelta(hours=1))


def work(*queues: str, name: str = "there:1", seconds: float = 0) -> None:
    """Have a worker that takes from these queues, last seen so long ago."""
    started = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    workers.beat(
        Beat(
            name=name,
            kind=WorkerKind.WORKER,
            host="there",
            pid=1,
            started_at=started,
            queues=queues,
            slots=1,
        )
    )
    Worker.objects.filter(name=name).update(seen_at=Now() - datetime.timedelta(seconds=seconds))


def served() -> list[tuple[str, bool]]:
    """The versions of `demo` that are served, and whether a worker has each."""
    found = versions.read_versions().get("demo", [])
    return [(one.agent.version, one.is_live) for one in found]


class TestAnnouncing:
    def test_what_is_announced_is_served_and_told(self) -> None:
        heard: list[pubsub.Hint] = []
        with pubsub.listen(heard.append):
            announce("1.0")
            announce("2.0")
        work("demo@2.0")
        assert served() == [("1.0", False), ("2.0", True)]
        assert heard == [pubsub.OverridesChanged()] * 2
        entries = AuditEntry.objects.filter(action="agent.announce").order_by("pk")
        assert [row.detail for row in entries] == [
            '{"version":"1.0","environment":"adk"}',
            '{"version":"2.0","environment":"adk"}',
        ]

    def test_an_equal_announcement_changes_nothing(self) -> None:
        announce()
        announce()
        assert AuditEntry.objects.filter(action="agent.announce").count() == 1

    def test_an_environment_may_change_its_card(self) -> None:
        announce()
        work("demo@1.0")
        announce(name="Better")
        (found,) = versions.read_versions()["demo"]
        assert found.agent.name == "Better"

    def test_another_environment_with_another_card_is_refused_while_a_worker_has_the_version(
        self,
    ) -> None:
        announce()
        work("demo@1.0")
        with pytest.raises(UnfitManifest, match="the environment adk has announced"):
            announce(environment="crewai", name="Other")
        assert AgentVersion.objects.get().environment == "adk"
        entry = AuditEntry.objects.get(action="announcement.refused")
        assert entry.outcome == "refused"
        assert "with another card" in entry.detail

    def test_another_environment_with_the_same_card_takes_it_over(self) -> None:
        announce()
        work("demo@1.0")
        announce(environment="crewai")
        assert AgentVersion.objects.get().environment == "crewai"

    def test_another_environment_is_refused_while_the_first_one_starts(self) -> None:
        announce(now=True)
        with pytest.raises(UnfitManifest, match="the environment adk has announced"):
            announce(environment="crewai", name="Other")

    def test_a_restart_counts_as_an_announcement(self) -> None:
        announce()
        announce(now=True)
        with pytest.raises(UnfitManifest, match="the environment adk has announced"):
            announce(environment="crewai", name="Other")

    def test_a_changed_card_does_not_make_a_version_younger(self) -> None:
        announce("1.0")
        announce("2.0")
        announce("1.0", name="Better", now=True)
        assert [version for version, _ in served()] == ["1.0", "2.0"]

    def test_an_indented_announcement_is_the_same(self) -> None:
        announce()
        before = AgentVersion.objects.get().digest
        text = msgspec.json.format(card(), indent=2)
        versions.announce(text, environment="adk", host="0.1.0")
        assert AgentVersion.objects.get().digest == before

    def test_a_version_that_no_worker_has_may_come_from_elsewhere(self) -> None:
        announce()
        work("demo@1.0", seconds=3600)
        announce(environment="crewai", name="Other")
        assert AgentVersion.objects.get().environment == "crewai"


class TestTrust:
    def test_without_keys_every_environment_is_served(self) -> None:
        announce()
        assert served() == [("1.0", False)]

    @pytest.mark.parametrize(
        ("environment", "key", "is_served"),
        [("adk", "one", True), ("adk", "two", False), ("adk", "", False), ("crewai", "one", False)],
    )
    def test_with_keys_only_named_environments_that_sign_are_served(
        self, environment: str, key: str, is_served: bool, settings: Any
    ) -> None:
        settings.A2A_ENVIRONMENT_KEYS = " adk=one , strands=three"
        settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
        announce(environment=environment, signature=sign(key, environment, card()))
        assert served() == ([("1.0", False)] if is_served else [])
        (row,) = (row for row in versions.list_versions("demo") if row.environment)
        assert row.standing.startswith("not served: ") != is_served

    @pytest.mark.parametrize(
        ("agents", "is_served"),
        [
            *(("adk=demo", True), ("strands=x, adk = other demo ", True), ("adk=*", True)),
            *(("", False), ("adk=", False), ("adk=dem", False), ("strands=demo", False)),
            ("demo", False),
        ],
    )
    def test_a_key_is_for_the_agents_that_are_named_for_its_environment(
        self, agents: str, is_served: bool, settings: Any
    ) -> None:
        settings.A2A_ENVIRONMENT_KEYS, settings.A2A_ENVIRONMENT_AGENTS = "adk=one", agents
        announce(signature=sign("one", "adk", card()))
        assert served() == ([("1.0", False)] if is_served else [])
        (row,) = (row for row in versions.list_versions("demo") if row.environment)
        refusal = "not let the environment adk announce the agent demo"
        assert (refusal in row.standing) is not is_served

    def test_agents_are_named_without_keys_as_well(self, settings: Any) -> None:
        announce()
        settings.A2A_ENVIRONMENT_AGENTS = "adk=tables"
        assert served() == []
        settings.A2A_ENVIRONMENT_AGENTS = "adk=tables demo"
        assert served() == [("1.0", False)]

    @pytest.mark.parametrize("keys", ["adk", "adk=", "adk= ", "=", ","])
    def test_an_environment_without_a_secret_is_not_served(self, keys: str, settings: Any) -> None:
        settings.A2A_ENVIRONMENT_KEYS = keys
        settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
        announce()
        assert served() == []

    def test_an_unsigned_announcement_replaces_no_signed_one_in_use(self, settings: Any) -> None:
        settings.A2A_ENVIRONMENT_KEYS = "adk=one"
        settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
        announce(signature=sign("one", "adk", card()))
        work("demo@1.0")
        with pytest.raises(UnfitManifest, match="set A2A_ENVIRONMENT_KEY"):
            announce()
        assert served() == [("1.0", True)]

    @pytest.mark.parametrize(
        "changes",
        [
            {"declaration": card(name="Forged").decode(), "digest": "0" * 64},
            {"signature": "ä" * 64},
            {"version": "9.9"},
            {"slug": "tables"},
            {"environment": "strands"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_row_that_was_altered_is_not_served(
        self, changes: dict[str, str], settings: Any
    ) -> None:
        settings.A2A_ENVIRONMENT_KEYS = "adk=one,strands=one"
        settings.A2A_ENVIRONMENT_AGENTS = "adk=*,strands=*"
        announce(signature=sign("one", "adk", card()))
        assert served() == [("1.0", False)]
        AgentVersion.objects.update(**changes)
        assert not any(versions.read_versions().values())

    @pytest.mark.parametrize(
        "changes",
        [
            {"declaration": "{", "digest": "1"},
            {"signature": "ä", "declaration": "[" * 100_000, "digest": "2"},
            {
                "declaration": card()[:-1].decode()
                + ',"extensions":[{"uri":"u","params":{"x":'
                + "[" * 9999
            },
            {"host": "9" * 32},
            {"host": "²"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_forged_row_hides_no_other_agent(
        self, changes: dict[str, str], settings: Any
    ) -> None:
        settings.A2A_ENVIRONMENT_KEYS = "adk=one"
        settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
        for version in ("1.0", "2.0"):
            announce(version, signature=sign("one", "adk", card(version)))
        AgentVersion.objects.filter(version="1.0").update(**changes)
        if "host" not in changes or changes["host"] != "²":
            assert served() == [("2.0", False)]
        assert "2.0" in [version for version, _ in served()]
        assert len(versions.list_versions()) == 3

    def test_an_altered_card_with_an_unaltered_digest_is_not_served_by_a_new_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        announce()
        AgentVersion.objects.update(declaration=card(name="Forged").decode())
        assert served() == []
        monkeypatch.setattr(versions, "_checked", {})
        assert served() == []

    def test_a_declaration_is_read_once(self, django_assert_num_queries: Any) -> None:
        announce("1.0")
        announce("2.0")
        versions.read_versions()
        with django_assert_num_queries(2) as asked:
            versions.read_versions()
        assert not any('"declaration"' in one["sql"] for one in asked.captured_queries)

    def test_without_reports_of_presence_every_version_counts_as_alive(self, settings: Any) -> None:
        announce()
        settings.A2A_PRESENCE_SECONDS = 0
        assert served() == [("1.0", True)]

    def test_an_agent_whose_versions_are_all_refused_is_still_known_to_have_some(self) -> None:
        announce(host="99.1.0")
        assert versions.read_versions() == {"demo": []}

    def test_a_row_of_a_newer_host_is_not_served_and_says_what_it_needs(self) -> None:
        announce(host="99.1.0")
        assert served() == []
        assert "needs a2a-host 99.1 or newer" in find_fault(AgentVersion.objects.get())

    def test_a_declaration_that_cannot_be_read_is_not_served_and_harms_no_other(self) -> None:
        announce("1.0")
        announce("2.0")
        AgentVersion.objects.filter(version="1.0").update(declaration="{", digest="")
        assert served() == [("2.0", False)]


class TestConversations:
    def pinned(self, context: str = "context-1") -> Pinned | None:
        return versions.find_pinned(ALICE, context_id=context)

    def test_a_conversation_keeps_the_version_it_began_with(self) -> None:
        assert self.pinned() is None
        accepted(companions=(versions.pin("1.0"),))
        assert self.pinned() == Pinned("1.0")
        assert versions.find_pinned(ALICE, task_id="task-1") == Pinned("1.0")
        accepted("task-2", companions=(versions.pin("1.0"),))
        with pytest.raises(Overloaded), transaction.atomic():
            accepted("task-3", companions=(versions.pin("2.0"),))
        assert self.pinned() == Pinned("1.0")
        assert Task.objects.count() == 2

    def test_one_that_began_when_there_were_no_versions_says_so(self) -> None:
        accepted()
        assert self.pinned() == Pinned(None)

    def test_that_of_somebody_else_is_not_found(self) -> None:
        accepted(companions=(versions.pin("1.0"),))
        assert versions.find_pinned(BOB, context_id="context-1") is None
        assert versions.find_pinned(BOB, task_id="task-1") is None

    def test_moved_conversations_take_their_waiting_runs_along(self) -> None:
        announce("1.0")
        announce("2.0")
        for number in range(3):
            accepted(
                f"task-{number}",
                context_id=f"context-{number}",
                queue="demo@1.0",
                companions=(versions.pin("1.0"),),
            )
        (running,) = claim(1, queues=["demo@1.0"])
        assert versions.move_conversations("demo", "1.0", "2.0") == 3
        assert set(Context.objects.values_list("version", flat=True)) == {"2.0"}
        queues = list(Run.objects.order_by("pk").values_list("queue", "status"))
        assert queues.count(("demo@2.0", "queued")) == 2
        assert Run.objects.get(pk=running.key).queue == "demo@1.0"

    @pytest.mark.parametrize(
        ("version", "to", "reason"),
        [
            ("1.0", "7", "no version '7' of the agent demo"),
            ("1.0", "", "Name the version"),
            ("1.0", "1.0", "are there already"),
            ("1.0.0", "1.0.0", "are there already"),
            ("", "1.0.0", "are there already"),
        ],
    )
    def test_nothing_is_moved_to_nowhere(self, version: str, to: str, reason: str) -> None:
        announce("1.0")
        accepted(queue="demo@1.0", companions=(versions.pin("1.0"),))
        with pytest.raises(ValueError, match=reason):
            versions.move_conversations("demo", version, to)
        assert Context.objects.get().version == "1.0"

    def test_those_of_the_hosts_own_code_move_with_those_from_before_there_were_versions(
        self,
    ) -> None:
        announce("2.0")
        accepted("task-1", context_id="before")
        accepted("task-2", context_id="own", companions=(versions.pin(""),))
        accepted("task-3", context_id="other", queue="demo@1.0", companions=(versions.pin("1.0"),))
        assert versions.move_conversations("demo", "1.0.0", "2.0") == 2
        assert list(Run.objects.order_by("pk").values_list("queue", flat=True)) == [
            "demo@2.0",
            "demo@2.0",
            "demo@1.0",
        ]

    def test_runs_that_an_operator_left_in_another_queue_stay_there(self) -> None:
        accepted("task-1", context_id="own", queue="night", companions=(versions.pin(""),))
        accepted("task-2", context_id="c2", queue="demo@1.0", companions=(versions.pin("1.0"),))
        switches.move("demo", "day")
        assert versions.move_conversations("demo", "1.0", "1.0.0") == 1
        queues = list(Run.objects.order_by("pk").values_list("queue", flat=True))
        assert queues == ["night", "day"]

    def test_an_environment_takes_its_own_code_for_no_host(self, settings: Any) -> None:
        settings.A2A_ENVIRONMENT = "adk"
        announce("1.0.0")
        announce("2.0")
        accepted(queue="demo@2.0", companions=(versions.pin("2.0"),))
        assert versions.move_conversations("demo", "2.0", "1.0.0") == 1
        assert Context.objects.get().version == "1.0.0"
        assert Run.objects.get().queue == "demo@1.0.0"

    def test_moved_runs_begin_in_the_next_round_and_parked_ones_stay_parked(self) -> None:
        announce("1.0")
        announce("2.0")
        for number in range(4):
            accepted(
                f"task-{number}",
                context_id=f"context-{number}",
                queue="demo@1.0",
                companions=(versions.pin("1.0"),),
            )
        Run.objects.filter(queue="demo@1.0").update(round=F("round") + 5000)
        Run.objects.filter(task__public_id="task-3").update(round=PARKED)
        accepted("task-9", context_id="context-9", queue="demo@2.0")
        first = Run.objects.get(queue="demo@2.0").round
        versions.move_conversations("demo", "1.0", "2.0")
        rounds = list(Run.objects.order_by("pk").values_list("round", flat=True))
        assert rounds == [first + 1, first + 2, first + 3, PARKED, first]
        assert set(Run.objects.values_list("queue", flat=True)) == {"demo@2.0"}


class TestGone:
    def wait(self, seconds: float = 3600) -> None:
        """Let a run of version 1.0 have waited so long."""
        accepted(queue="demo@1.0", companions=(versions.pin("1.0"),))
        accepted("task-2", queue="agents")
        Run.objects.update(due_at=Now() - datetime.timedelta(seconds=seconds))

    def test_tasks_of_a_version_that_no_worker_has_fail_with_words(self) -> None:
        self.wait()
        assert versions.fail_tasks_of([("demo", "1.0")]) == 1
        task = Task.objects.get(public_id="task-1")
        assert task.state == "TASK_STATE_FAILED"
        assert "No worker has version 1.0 of the agent any more." in task.status_message
        assert Run.objects.get(task=task).status == RunStatus.DROPPED
        assert Task.objects.get(public_id="task-2").state == "TASK_STATE_SUBMITTED"
        assert versions.fail_tasks_of([("demo", "1.0")]) == 0

    def test_those_that_cannot_be_failed_do_not_keep_the_others_from_their_turn(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "BATCH", 2)
        monkeypatch.setattr(versions, "_tried", {})
        for number in range(5):
            accepted(f"task-{number}", context_id=f"c-{number}", queue="demo@1.0")
        Run.objects.update(due_at=Now() - datetime.timedelta(hours=1))
        # A run works on these, so they are left as they are.
        Task.objects.filter(public_id__in=["task-0", "task-1"]).update(run_token="x")
        assert [versions.fail_tasks_of([("demo", "1.0")]) for _ in range(4)] == [0, 2, 1, 0]
        failed = Task.objects.filter(state="TASK_STATE_FAILED").values_list("public_id", flat=True)
        assert set(failed) == {"task-2", "task-3", "task-4"}
        Task.objects.update(run_token="")
        assert sum(versions.fail_tasks_of([("demo", "1.0")]) for _ in range(3)) == 2

    def test_a_run_that_waits_for_a_short_time_is_spared(self) -> None:
        self.wait(seconds=1)
        assert versions.fail_tasks_of([("demo", "1.0")]) == 0

    def test_a_worker_that_was_seen_a_moment_ago_may_come_back(self) -> None:
        self.wait()
        work("demo@1.0", seconds=30)
        assert versions.fail_tasks_of([("demo", "1.0")]) == 0


class TestForgetting:
    def test_a_version_is_removed_once(self) -> None:
        announce()
        assert versions.forget("demo", "1.0")
        assert not versions.forget("demo", "1.0")
        assert AuditEntry.objects.filter(action="agent.forget").count() == 1

    def test_not_while_a_worker_may_be_starting_with_it(self) -> None:
        announce(now=True)
        with pytest.raises(ValueError, match="may be starting"):
            versions.forget("demo", "1.0")

    def test_not_while_a_worker_has_it_nor_while_runs_wait(self) -> None:
        announce()
        work("demo@1.0")
        with pytest.raises(ValueError, match="are alive"):
            versions.forget("demo", "1.0")
        work("demo@1.0", seconds=3600)
        accepted(queue="demo@1.0")
        with pytest.raises(ValueError, match="move its conversations first"):
            versions.forget("demo", "1.0")
        assert AgentVersion.objects.exists()


class TestServing:
    def test_a_roll_back_ends_the_canary_and_then_returns_to_the_version_before(self) -> None:
        announce("1.0")
        announce("2.0")
        switches.serve("demo", "1.0")
        switches.serve("demo", "2.0")
        switches.set_canary("demo", "1.0", 10)
        assert switches.roll_back("demo")
        assert (switches.of("demo").version, switches.of("demo").canary) == ("2.0", "")
        assert switches.roll_back("demo")
        assert switches.of("demo").version == "1.0"

    def test_an_agent_that_was_never_switched_has_nothing_to_return_to(self) -> None:
        assert not switches.roll_back("demo")

    @pytest.mark.parametrize("percent", [-1, 100.1, float("nan"), float("inf")])
    def test_a_share_is_a_percentage(self, percent: float) -> None:
        announce()
        with pytest.raises(ValueError, match="from 0 to 100"):
            switches.set_canary("demo", "1.0", percent)

    def test_a_version_that_is_not_there_cannot_serve(self) -> None:
        with pytest.raises(ValueError, match="no version '7'"):
            switches.serve("demo", "7")
        with pytest.raises(ValueError, match="no version '7'"):
            switches.set_canary("demo", "7", 10)

    def test_the_list_says_what_each_version_is(self) -> None:
        announce("2.0")
        announce("3.0")
        work("demo@2.0", "agents")
        switches.set_canary("demo", "2.0", 12.5)
        accepted(queue="demo@2.0", companions=(versions.pin("2.0"),))
        rows = versions.list_versions("demo")
        assert [(row.version, row.environment, row.standing, row.workers) for row in rows] == [
            ("1.0.0", "", "serves", 1),
            ("2.0", "adk", "canary, 12.5 %", 1),
            ("3.0", "adk", "", 0),
        ]
        assert [row.unfinished for row in rows] == [0, 1, 0]
        assert versions.list_versions("tables") == []

    def test_the_command_lists_workers_and_unfinished_runs(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        announce("2.0")
        work("demo@2.0")
        accepted(queue="demo@2.0", companions=(versions.pin("2.0"),))
        call_command("agent_versions", "list", "demo")
        assert capsys.readouterr().out.splitlines() == [
            "demo  1.0.0  this host  workers: 0, unfinished runs: 0  serves",
            "demo  2.0  adk  workers: 1, unfinished runs: 1",
        ]

    def test_unfinished_runs_are_those_of_the_queue_of_a_version(self) -> None:
        announce("2.0")
        accepted("task-1", context_id="c1")
        accepted("task-2", context_id="c2", queue="night", companions=(versions.pin(""),))
        accepted("task-3", context_id="c3", queue="demo@2.0", companions=(versions.pin("2.0"),))
        Context.objects.filter(public_id="c3").update(version="3.0")  # was moved while it ran
        assert [row.unfinished for row in versions.list_versions("demo")] == [2, 1]

    def test_a_version_that_the_hosts_own_code_has_too_is_not_said_to_serve(self) -> None:
        announce("1.0.0")
        own, other = versions.list_versions("demo")
        assert own.standing == "serves"
        assert other.standing == "not served: the host's own code has this version"

    def test_a_version_that_is_not_served_cannot_be_chosen(self) -> None:
        announce("2.0", host="99.1.0")
        with pytest.raises(ValueError, match=r"not served: it needs a2a-host 99\.1 or newer"):
            switches.serve("demo", "2.0")
        with pytest.raises(ValueError, match="is not served"):
            switches.set_canary("demo", "2.0", 10)
        with pytest.raises(ValueError, match="is not served"):
            versions.move_conversations("demo", "1.0.0", "2.0")

    def test_an_agent_that_is_not_there_cannot_be_switched(self) -> None:
        with pytest.raises(ValueError, match="no agent 'nobody'"):
            switches.serve("nobody", "")
        with pytest.raises(ValueError, match="no agent 'nobody'"):
            switches.set_canary("nobody", "", 0)

    def test_a_second_click_does_not_undo_a_roll_back(self) -> None:
        announce("1.0")
        announce("2.0")
        switches.serve("demo", "1.0")
        switches.serve("demo", "2.0")
        seen = switches.identify_choice(switches.row_of("demo"))
        assert switches.roll_back("demo", seen=seen)
        with pytest.raises(ValueError, match="have changed since"):
            switches.roll_back("demo", seen=seen)
        assert switches.of("demo").version == "1.0"


@pytest.mark.django_db(transaction=True)
@pytest.mark.backend("stack")
class TestRaces:
    def test_of_two_environments_that_announce_at_once_one_is_refused(self) -> None:
        for number in range(ROUNDS):
            results = at_once(
                *(
                    partial(announce, f"1.{number}", environment, name=environment, now=True)
                    for environment in ("adk", "crewai")
                )
            )
            (refused,) = (result for result in results if result is not None)
            assert isinstance(refused, UnfitManifest)
            row = AgentVersion.objects.get(version=f"1.{number}")
            assert row.environment in row.declaration

    def test_two_workers_of_one_environment_announce_at_once(self) -> None:
        for number in range(ROUNDS):
            one = partial(announce, f"1.{number}", now=True)
            assert at_once(one, one, one) == [None] * 3
        assert AgentVersion.objects.count() == ROUNDS

    def test_a_version_that_a_worker_announces_is_not_forgotten(self) -> None:
        for number in range(ROUNDS):
            name = f"1.{number}"
            announce(name)
            AgentVersion.objects.update(announced_at=Now() - datetime.timedelta(hours=1))
            at_once(partial(announce, name, now=True), partial(versions.forget, "demo", name))
            assert AgentVersion.objects.filter(version=name).exists()

    def test_no_run_is_left_behind_when_its_conversation_moves(self) -> None:
        announce("1.0")
        announce("2.0")
        for number in range(ROUNDS):
            contexts = [f"{number}-{letter}" for letter in "dbca"]
            for context in contexts:
                accepted(f"first-{context}", context_id=context, companions=(versions.pin("1.0"),))
            later = [
                new(
                    f"later-{context}",
                    context_id=context,
                    queue="demo@1.0",
                    companions=(versions.pin("1.0"),),
                )
                for context in contexts
            ]
            answer = new(
                f"first-{contexts[0]}",
                context_id=contexts[0],
                queue="demo@1.0",
                companions=(versions.pin("1.0"),),
            )
            results = at_once(
                partial(accept_many, later),
                partial(reply, answer),
                partial(versions.move_conversations, "demo", "1.0", "2.0"),
            )
            faults = [one for one in results if isinstance(one, BaseException)]
            assert all(isinstance(fault, versions.VersionMoved) for fault in faults), faults
            assert not Run.objects.filter(queue="demo@1.0").exists()
            assert not Context.objects.filter(version="1.0").exists()
