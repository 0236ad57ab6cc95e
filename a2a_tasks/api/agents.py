"""Agents: what is hosted here, what each declares, and how much it has to do."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin.agent_admin import Standing, standings
from a2a_tasks.admin.paging import COUNTED, newest
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import accepted, open_to_anybody
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Operator, Right, operator_of, there_for
from a2a_tasks.api.problems import NotFound, wrong
from a2a_tasks.models import Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import switches
from a2a_tasks.store.agent_figures import LOOKED
from a2a_tasks.store.switches import SwitchState

__all__ = ["AgentList", "AgentOne"]

TO_VIEW = Right.to_view("a2a_tasks.task", of_agents=True)
TO_SWITCH = Right.to_change("a2a_tasks.agentswitch")


class SkillSerializer(serializers.Serializer[Any]):
    """A skill, as the agent declares it."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    scopes = serializers.ListField(child=serializers.CharField())


class ExtensionSerializer(serializers.Serializer[Any]):
    """An extension of the protocol that the agent speaks."""

    uri = serializers.CharField()
    required = serializers.BooleanField()  # type: ignore[assignment] # DRF takes fields off the class


class CountsSerializer(serializers.Serializer[Any]):
    """How many tasks there are of an agent, by state."""

    by_state = serializers.DictField(
        child=serializers.IntegerField(), help_text="States without tasks are left out."
    )
    at_least = serializers.ListField(
        child=serializers.CharField(),
        help_text=f"States of which only the newest {COUNTED:,} tasks of all agents were counted.",
    )


class SwitchSerializer(serializers.Serializer[Any]):
    """What operators have set of an agent."""

    state = serializers.ChoiceField(
        SwitchState.values, help_text="`draining`: no new tasks; `off`: to clients there is none."
    )
    max_running = serializers.IntegerField(
        allow_null=True, help_text="Runs under way at once on the whole host; null: any number."
    )
    queue = serializers.CharField(help_text="Where its runs wait; empty: as its class says.")
    by = serializers.CharField(
        help_text="Who set it last; empty: nothing was ever set, or not for who does not see all tenants."
    )
    at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(help_text="Empty for who does not see all tenants.")


class LoadSerializer(serializers.Serializer[Any]):
    """What there is to do for an agent."""

    running = serializers.IntegerField(help_text=f"Counted to {LOOKED:,} of all agents.")
    queued = serializers.IntegerField(help_text=f"Counted to {LOOKED:,} of all agents.")


class HealthSerializer(serializers.Serializer[Any]):
    """How its tasks of the past hour ended."""

    ended = serializers.IntegerField(help_text="Tasks that ended in the past hour.")
    failed = serializers.IntegerField(help_text="How many of them failed.")
    p95 = serializers.FloatField(
        allow_null=True, help_text="Seconds that 95 % of them took at most."
    )


class Switching(serializers.Serializer[Any]):
    """What is to be set; what is not said stays."""

    state = serializers.ChoiceField(SwitchState.values, required=False)
    max_running = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=switches.MOST,
        help_text="Null: any number.",
    )
    queue = serializers.CharField(
        required=False, allow_blank=True, max_length=64, help_text="Empty: as its class says."
    )
    reason = serializers.CharField(required=False, allow_blank=True, max_length=500)


class AgentSerializer(serializers.Serializer[Any]):
    """An agent of this host."""

    slug = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    description = serializers.CharField()
    enabled = serializers.BooleanField(
        help_text="False: named in `A2A_DISABLED_AGENTS`, or switched off."
    )
    anonymous = serializers.BooleanField(help_text="Callers without credentials are let in.")
    schemes = serializers.ListField(
        child=serializers.CharField(), help_text="Ways to show who one is that it accepts."
    )
    scopes = serializers.ListField(child=serializers.CharField())
    default_input_modes = serializers.ListField(child=serializers.CharField())
    default_output_modes = serializers.ListField(child=serializers.CharField())
    skills = SkillSerializer(many=True)
    extensions = ExtensionSerializer(many=True)
    streaming = serializers.BooleanField()
    push_notifications = serializers.BooleanField()
    push_events = serializers.CharField()
    replies_directly = serializers.BooleanField()
    has_extended_card = serializers.BooleanField()
    queue = serializers.CharField(help_text="Where its class has its runs wait.")
    runs_in = serializers.CharField(help_text="`process`, or empty.")
    after_crash = serializers.CharField()
    tasks = CountsSerializer()
    switch = SwitchSerializer()
    load = LoadSerializer(allow_null=True, help_text="Null for who does not see all tenants.")
    health = HealthSerializer(allow_null=True, help_text="Null for who does not see all tenants.")
    workers = serializers.IntegerField(help_text="Living processes that take from its queue.")
    versions = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="The versions on its card, as living processes have it: each with how many of them.",
    )


SWITCH = ("state", "max_running", "queue", "by", "reason")
#: What is shown as the agent's class says it.
DECLARED = (
    *("slug", "name", "version", "description", "scopes", "default_input_modes"),
    *("default_output_modes", "skills", "extensions", "streaming", "push_notifications"),
    *("push_events", "replies_directly", "has_extended_card", "queue", "runs_in", "after_crash"),
)


class AgentsSerializer(serializers.Serializer[Any]):
    """All agents of this host, by slug."""

    items = AgentSerializer(many=True)


class AgentList(View):
    """All agents."""

    @action("list_agents", TO_VIEW, AgentsSerializer)
    def get(self, request: Request, asked: Asked) -> Response:
        """List the agents of this host, those that are off as well."""
        operator = operator_of(request)
        counts = _counts(operator)
        found = [one for one in standings() if operator.operates(one.agent.slug)]
        shown = [_shown(one, counts, operator) for one in found]
        return Response(AgentsSerializer({"items": shown}).data)


class AgentOne(View):
    """One agent."""

    @action("get_agent", TO_VIEW, AgentSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, slug: str) -> Response:
        """Show an agent."""
        return Response(_one(operator_of(request), slug))

    @action("switch_agent", TO_SWITCH, AgentSerializer, body=Switching, problems=(404,))
    def patch(self, request: Request, asked: Asked, *, slug: str) -> Response:
        """Switch an agent on, off or to draining, limit it, or move it to another queue.

        Every process follows within `A2A_CREDENTIAL_SECONDS`. What runs goes on, whatever is set. It is for operators of the
        whole host: to those of a tenant there is no such agent.
        """
        operator = operator_of(request)
        if operator.tenants is not None or registry.hosted(slug) is None:
            raise NotFound
        reason = asked.get("reason", "")
        try:
            if "queue" in asked:  # first, since it may be refused
                switches.move(slug, asked["queue"], reason)
            if "max_running" in asked:
                switches.limit(slug, asked["max_running"], reason)
            if "state" in asked:
                switches.set_state(slug, SwitchState(asked["state"]), reason)
        except ValueError as fault:
            raise wrong("body", "queue", str(fault)) from None
        return Response(_one(operator, slug))


def _one(operator: Operator, slug: str) -> Any:
    """An agent, as the operator sees it. Raises NotFound."""
    found = [one for one in standings() if one.agent.slug == slug and operator.operates(slug)]
    if not found:
        raise NotFound
    return AgentSerializer(_shown(found[0], _counts(operator), operator)).data


@dataclass(frozen=True)
class _Counts:
    by_agent: dict[str, dict[str, int]]
    at_least: list[str]


def _counts(operator: Operator) -> _Counts:
    """One look along the index of each state (`task_admin_state`), at a bounded number of tasks."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    at_least = []
    for state in TaskState:
        # Of what has ended there may be any number that is not theirs: no further than the newest.
        rows = Task.objects.filter(state=state)
        rows = newest(rows) if state in TERMINAL and not operator.sees_all else rows
        some = there_for(operator, rows).order_by("-pk")[:COUNTED]
        totals = Counter(some.values_list("agent", flat=True))
        for agent, number in totals.items():
            found[agent][state.word] = number
        if totals.total() == COUNTED:
            at_least.append(state.word)
    return _Counts(found, at_least)


def _shown(standing: Standing, counts: _Counts, operator: Operator) -> dict[str, Any]:
    agent, switch = standing.agent, standing.switch
    return {
        **{name: getattr(agent, name) for name in DECLARED},
        "enabled": standing.state != SwitchState.OFF,
        "switch": {name: getattr(switch, name) for name in SWITCH}
        | {"at": switch.at if switch.pk else None}
        | ({} if operator.sees_all else {"by": "", "reason": ""}),
        "load": standing.load if operator.sees_all else None,
        "health": standing.health if operator.sees_all else None,
        "workers": len(standing.workers),
        "versions": standing.versions,
        "anonymous": open_to_anybody(agent),
        "schemes": accepted(agent),
        "tasks": {"by_state": counts.by_agent.get(agent.slug, {}), "at_least": counts.at_least},
    }
