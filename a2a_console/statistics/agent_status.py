"""The status of each agent, from its switch, its runs and the processes that host it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a2a_console.statistics.reports import Line, report_agents
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents import switches as known_switches
from a2a_tasks.agents import versions as known_versions
from a2a_tasks.agents.declaration import AnnouncedAgent
from a2a_tasks.models import AgentSwitch, Worker
from a2a_tasks.store import switches, versions, workers

__all__ = ["AgentStatus", "list_agent_statuses"]


@dataclass(frozen=True, kw_only=True)
class AgentStatus:
    """The status of an agent, from its switch, its runs and the processes that host it."""

    agent: Agent
    switch: AgentSwitch
    #: Its unfinished runs, and its tasks that ended in the past hour.
    statistics: Line
    #: The workers that serve its queue.
    workers: list[Worker]
    #: The versions of its card, each with the number of processes whose code has it.
    versions: Mapping[str, int]

    @property
    def state(self) -> str:
        """ "on", "draining" or "off"."""
        return "off" if self.disabled else str(self.switch.state)

    @property
    def disabled(self) -> bool:
        """True if A2A_DISABLED_AGENTS disables the agent. Its switch cannot enable it then."""
        return self.agent.slug in registry.list_disabled()

    @property
    def queue(self) -> str:
        """The queue of its runs."""
        return _queue_of(self.agent, self.switch)

    @property
    def environment(self) -> str:
        """The environment of the version that serves; empty = the host's own code."""
        return self.agent.environment if isinstance(self.agent, AnnouncedAgent) else ""


def list_agent_statuses() -> list[AgentStatus]:
    """Return the status of all agents, by slug, in a fixed number of bounded queries."""
    rows = {row.slug: row for row in AgentSwitch.objects.all()}
    there, statistics = workers.alive(), report_agents()
    # This process may have read them a while ago.
    known_switches.put({slug: switches.read_row(row) for slug, row in rows.items()})
    known_versions.put(versions.read_versions())
    return [
        _make_status(agent, rows.get(slug) or AgentSwitch(slug=slug), there, statistics)
        for slug in registry.slugs()
        if (agent := registry.find_hosted(slug))
    ]


def _queue_of(agent: Agent, switch: AgentSwitch) -> str:
    return agent.queue if isinstance(agent, AnnouncedAgent) else switch.queue or agent.queue


def _make_status(
    agent: Agent, switch: AgentSwitch, there: list[Worker], statistics: Mapping[str, Line]
) -> AgentStatus:
    versions: dict[str, int] = {}
    for worker in there:
        if version := worker.agents.get(agent.slug):
            versions[version] = versions.get(version, 0) + 1
    queue = _queue_of(agent, switch)
    return AgentStatus(
        agent=agent,
        switch=switch,
        statistics=statistics.get(agent.slug, Line()),
        workers=[w for w in there if queue in w.queues and w.slots and not w.draining],
        versions=versions,
    )
