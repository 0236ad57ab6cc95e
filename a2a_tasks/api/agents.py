"""Agents: what is hosted here, what each declares, and how much it has to do."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin.paging import COUNTED, newest
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.security import accepted, open_to_anybody
from a2a_tasks.api.action import Asked, View, action
from a2a_tasks.api.door import Operator, Right, operator_of, there_for
from a2a_tasks.api.problems import NotFound
from a2a_tasks.models import Task
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState

__all__ = ["AgentList", "AgentOne"]

TO_VIEW = Right.to_view("a2a_tasks.task", of_agents=True)


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


class AgentSerializer(serializers.Serializer[Any]):
    """An agent of this host."""

    slug = serializers.CharField()
    name = serializers.CharField()
    version = serializers.CharField()
    description = serializers.CharField()
    enabled = serializers.BooleanField(help_text="False: named in `A2A_DISABLED_AGENTS`.")
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
    queue = serializers.CharField(help_text="The queue whose workers run it.")
    runs_in = serializers.CharField(help_text="`process`, or empty.")
    after_crash = serializers.CharField()
    tasks = CountsSerializer()


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
        slugs = filter(operator.operates, registry.slugs())
        agents = [agent for slug in slugs if (agent := registry.hosted(slug))]
        shown = [_shown(agent, counts) for agent in agents]
        return Response(AgentsSerializer({"items": shown}).data)


class AgentOne(View):
    """One agent."""

    @action("get_agent", TO_VIEW, AgentSerializer, problems=(404,))
    def get(self, request: Request, asked: Asked, *, slug: str) -> Response:
        """Show an agent."""
        operator = operator_of(request)
        agent = registry.hosted(slug) if operator.operates(slug) else None
        if agent is None:
            raise NotFound
        return Response(AgentSerializer(_shown(agent, _counts(operator))).data)


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


def _shown(agent: Agent, counts: _Counts) -> dict[str, Any]:
    return {
        **{name: getattr(agent, name) for name in DECLARED},
        "enabled": registry.find(agent.slug) is not None,
        "anonymous": open_to_anybody(agent),
        "schemes": accepted(agent),
        "tasks": {"by_state": counts.by_agent.get(agent.slug, {}), "at_least": counts.at_least},
    }
