"""Agents in the API: declaration, switch, load and health of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_console.api.operators import Operator, RequiredRight, filter_visible
from a2a_console.api.pagination import ItemsPagination
from a2a_console.api.schema import extend_schema
from a2a_console.api.viewsets import HostViewSet
from a2a_console.search.bounded_rows import COUNTED, newest
from a2a_console.statistics.agent_status import AgentStatus, list_agent_statuses
from a2a_console.statistics.counts import COUNTED as COUNTED_RUNS
from a2a_console.times import MomentField
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import list_accepted, open_to_anybody
from a2a_tasks.models import Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import switches
from a2a_tasks.store.switches import SwitchState

__all__ = ["AgentViewSet"]

TO_VIEW = RequiredRight.to_view("a2a_tasks.task", of_agents=True)
TO_SWITCH = RequiredRight.to_change("a2a_tasks.agentswitch")
BOUND = f"Counting stops at {COUNTED_RUNS:,} runs of all agents."


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
    """The numbers of an agent's tasks by state."""

    by_state = serializers.DictField(
        child=serializers.IntegerField(), help_text="States without tasks are left out."
    )
    at_least = serializers.ListField(
        child=serializers.CharField(),
        help_text=f"States of which only the newest {COUNTED:,} tasks of all agents were counted.",
    )


class SwitchSerializer(serializers.Serializer[Any]):
    """The settings of an agent by operators."""

    state = serializers.ChoiceField(
        SwitchState.values,
        help_text="`draining`: no new tasks; `off`: clients do not see the agent.",
    )
    max_running = serializers.IntegerField(
        allow_null=True,
        help_text="Maximum number of concurrent runs on the whole host; null = unlimited.",
    )
    queue = serializers.CharField(
        help_text="Queue of the agent's runs. Empty: the queue that the class of the agent names."
    )
    by = serializers.CharField(
        help_text="The user who changed the switch last. Empty: it was never changed, or the operator does not see all tenants."
    )
    at = MomentField(allow_null=True)
    reason = serializers.CharField(help_text="Reason of the last change, hidden like the user.")


class LoadSerializer(serializers.Serializer[Any]):
    """The queued and running runs of an agent."""

    running = serializers.IntegerField(help_text=BOUND)
    queued = serializers.IntegerField(help_text=BOUND)


class HealthSerializer(serializers.Serializer[Any]):
    """The results of an agent's tasks in the past hour."""

    ended = serializers.IntegerField(help_text="Tasks that ended in the past hour.")
    failed = serializers.IntegerField(help_text="Tasks that ended as `failed` in the past hour.")


class SwitchingSerializer(serializers.Serializer[Any]):
    """The settings to change; others stay as they are."""

    state = serializers.ChoiceField(SwitchState.values, required=False)
    max_running = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=switches.MAX_COUNT,
        help_text="Maximum number of concurrent runs on the whole host; null = unlimited.",
    )
    queue = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=64,
        help_text="Queue of the agent's new runs. Empty: the queue that the class of the agent names.",
    )
    reason = serializers.CharField(required=False, allow_blank=True, max_length=500)


class AgentSerializer(serializers.Serializer[Any]):
    """An agent of this host."""

    slug = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    description = serializers.CharField()
    enabled = serializers.BooleanField(
        help_text="False: the agent is named in `A2A_DISABLED_AGENTS`, or its switch is `off`."
    )
    anonymous = serializers.BooleanField(help_text="True: callers need no credentials.")
    schemes = serializers.ListField(
        child=serializers.CharField(), help_text="Security schemes that the agent accepts."
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
    queue = serializers.CharField(help_text="Queue that the class of the agent names.")
    runs_in = serializers.CharField(help_text="`process`: runs have processes of their own.")
    after_crash = serializers.CharField()
    tasks = CountsSerializer()
    switch = SwitchSerializer()
    load = LoadSerializer(
        allow_null=True, help_text="Hidden (null) unless the operator sees all tenants."
    )
    health = HealthSerializer(
        allow_null=True, help_text="Hidden (null) unless the operator sees all tenants."
    )
    workers = serializers.IntegerField(help_text="Live processes that serve the agent's queue.")
    versions = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Versions of the agent in live processes, with the number of processes of each.",
    )


MEMBERS, SWITCH = tuple(AgentSerializer().fields), tuple(SwitchSerializer().fields)


class AgentViewSet(HostViewSet[Any]):
    """Agents."""

    serializer_class = AgentSerializer
    request_serializer_classes = {"partial_update": SwitchingSerializer}
    pagination_class = ItemsPagination
    required_right = TO_VIEW
    required_rights = {"partial_update": TO_SWITCH}
    lookup_url_kwarg = "slug"
    lookup_value_converter = "slug"

    def list(self, request: Request) -> Response:
        """List the agents of this host, including those that are off."""
        counts = _count_tasks(self.operator)
        found = [one for one in list_agent_statuses() if self.operator.operates(one.agent.slug)]
        shown = [_describe(one, counts, self.operator) for one in found]
        return self.get_paginated_response(self.get_serializer(shown, many=True).data)

    def retrieve(self, request: Request, slug: str) -> Response:
        """Show an agent."""
        found = [one for one in list_agent_statuses() if one.agent.slug == slug]
        if not (found and self.operator.operates(slug)):
            raise NotFound
        shown = _describe(found[0], _count_tasks(self.operator), self.operator)
        return Response(self.get_serializer(shown).data)

    @extend_schema(operation_id="switch_agent")
    def partial_update(self, request: Request, slug: str) -> Response:
        """Switch an agent on, off or to draining, limit it, or move it to another queue.

        Every process follows within `A2A_CREDENTIAL_SECONDS`. Runs that have begun continue, whatever is set. Only
        operators of the whole host may do this; operators of a tenant get 404.
        """
        if self.operator.tenants is not None or registry.find_hosted(slug) is None:
            raise NotFound
        given = self.given
        reason = given.get("reason", "")
        try:
            if "queue" in given:  # first, since the queue may be refused
                switches.move(slug, given["queue"], reason)
            if "max_running" in given:
                switches.limit(slug, given["max_running"], reason)
            if "state" in given:
                switches.set_state(slug, SwitchState(given["state"]), reason)
        except ValueError as fault:
            raise serializers.ValidationError({"queue": str(fault)}) from None
        return self.retrieve(request, slug)


@dataclass(frozen=True)
class _TaskCounts:
    by_agent: dict[str, dict[str, int]]
    at_least: list[str]


def _count_tasks(operator: Operator) -> _TaskCounts:
    """Count tasks by one query per state along the index `task_admin_state`, each of a bounded number of rows."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    at_least = []
    for state in TaskState:
        # There may be any number of ended tasks that the operator may not see: only the newest are searched.
        rows = Task.objects.filter(state=state)
        rows = newest(rows) if state in TERMINAL and not operator.sees_all else rows
        some = filter_visible(operator, rows).order_by("-pk")[:COUNTED]
        totals = Counter(some.values_list("agent", flat=True))
        for agent, number in totals.items():
            found[agent][state.word] = number
        if totals.total() == COUNTED:
            at_least.append(state.word)
    return _TaskCounts(found, at_least)


def _describe(status: AgentStatus, counts: _TaskCounts, operator: Operator) -> dict[str, Any]:
    agent, switch = status.agent, status.switch
    return {
        **{name: getattr(agent, name) for name in MEMBERS if hasattr(agent, name)},
        "enabled": status.state != SwitchState.OFF,
        "switch": {name: getattr(switch, name) for name in SWITCH}
        | {"at": switch.at if switch.pk else None}
        | ({} if operator.sees_all else {"by": "", "reason": ""}),
        "load": status.statistics if operator.sees_all else None,
        "health": status.statistics if operator.sees_all else None,
        "workers": len(status.workers),
        "versions": status.versions,
        "anonymous": open_to_anybody(agent),
        "schemes": list_accepted(agent),
        "tasks": {"by_state": counts.by_agent.get(agent.slug, {}), "at_least": counts.at_least},
    }
