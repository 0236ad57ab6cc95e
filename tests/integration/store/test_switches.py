"""Switches of agents in the store: set, told to the audit log, and kept by every claim."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks import pubsub
from a2a_tasks.agents.switches import Switch
from a2a_tasks.audit import act_as
from a2a_tasks.caller import OwnerScope
from a2a_tasks.models import AgentSwitch, AuditEntry, Run, RunStatus
from a2a_tasks.store import switches
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.switches import SwitchState
from tests.support.store.world import accepted, at_once, claim

OTHER = OwnerScope("", "user:alice", "other")


class TestSetting:
    pytestmark = pytest.mark.django_db

    def test_what_is_set_is_found_with_who_set_it_and_why(self) -> None:
        with act_as(lambda: "staff:7"):
            assert switches.set_state("demo", SwitchState.DRAINING, " deploy ")
        switches.limit("demo", 3)
        switches.move("demo", "night")
        assert switches.read_switches() == {"demo": Switch("draining", 3, "night")}
        assert (switches.row_of("demo").by, switches.row_of("demo").reason) == ("system:host", "")
        entries = AuditEntry.objects.filter(object="demo").order_by("pk")
        assert [(row.action, row.actor, row.detail) for row in entries] == [
            ("agent.drain", "staff:7", '{"state":"draining","reason":"deploy"}'),
            ("agent.limit", "system:host", '{"max_running":"3"}'),
            ("agent.queue", "system:host", '{"queue":"night"}'),
        ]

    @pytest.mark.parametrize("most", [-1, switches.MAX_COUNT + 1, 10**30])
    def test_a_limit_that_no_host_has_is_refused(self, most: int) -> None:
        with pytest.raises(ValueError, match="from 0 to 1,000,000"):
            switches.limit("demo", most)
        assert not AgentSwitch.objects.exists()

    def test_what_is_so_already_is_not_set_again(self) -> None:
        assert not switches.set_state("demo", SwitchState.ON)
        assert switches.set_state("demo", SwitchState.OFF)
        assert not switches.set_state("demo", SwitchState.OFF)
        assert AuditEntry.objects.filter(action="agent.disable").count() == 1

    def test_it_is_told_once_it_is_committed(self) -> None:
        heard: list[pubsub.Hint] = []
        with pubsub.listen(heard.append):
            switches.limit("demo", 3)
            switches.limit("demo", 3)
            switches.limit("demo", None)
        assert heard == [pubsub.OverridesChanged()] * 2
        assert AgentSwitch.objects.get().max_running is None

    @pytest.mark.parametrize("name", ["a b", "x" * 65, "a/b", "\u00e4"])
    def test_a_queue_has_a_name_that_a_broker_takes(self, name: str) -> None:
        with pytest.raises(ValueError, match="named by"):
            switches.move("demo", name)


def take(limits: dict[str, int], limit: int = 10, **about: Any) -> list[ClaimedRun]:
    return claim(limit, agents=["demo", "other"], limits=limits, **about)


def of(taken: list[ClaimedRun]) -> list[str]:
    return [one.task_id for one in taken]


def waiting(count: int = 3) -> None:
    """So many runs of each of two agents."""
    for n in range(count):
        accepted(f"demo-{n}")
        accepted(f"other-{n}", scope=OTHER)


class TestLimits:
    pytestmark = pytest.mark.django_db

    def test_no_more_runs_are_taken_than_may_be_under_way(self) -> None:
        waiting()
        assert of(take({"demo": 2})) == ["demo-0", "demo-1", "other-0", "other-1", "other-2"]
        assert of(take({"demo": 2})) == []
        Run.objects.filter(task__public_id="demo-0").update(
            status=RunStatus.ENDED, token="", lease_until=None
        )
        assert of(take({"demo": 2})) == ["demo-2"]

    def test_none_at_all_are_taken_where_none_may_be(self) -> None:
        waiting(1)
        assert of(take({"demo": 0})) == ["other-0"]

    def test_without_the_limit_all_go_on(self) -> None:
        waiting(1)
        take({"demo": 0})
        assert of(take({})) == ["demo-0"]

    def test_who_waits_for_long_under_a_limit_is_no_orphan(self, settings: Any) -> None:
        settings.A2A_ORPHAN_SECONDS = 0.0
        waiting(2)
        assert of(take({"demo": 1})) == ["demo-0", "other-0", "other-1"]
        assert of(take({"demo": 1})) == []

    def test_an_agent_that_is_limited_and_hosted_elsewhere_stays_there(self) -> None:
        waiting(1)
        taken = claim(agents=["other"], limits={"demo": 5})
        assert of(taken) == ["other-0"]

    def test_a_process_with_little_room_takes_no_more_than_that(self) -> None:
        waiting()
        assert len(take({"demo": 2}, limit=1)) == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.backend("stack")
    def test_of_processes_that_claim_at_once_each_counts_what_the_others_took(self) -> None:
        for n in range(12):
            accepted(f"demo-{n}")
        found = at_once(*[lambda: take({"demo": 5})] * 4)
        assert sum(len(taken) for taken in found if isinstance(taken, list)) == 5
