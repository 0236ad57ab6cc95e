"""Agents in the admin: health, load and grants of each. An agent is switched, limited and moved while the host runs.

The rows are the switches. An agent without a switch is on, with the values of its class, so the pages go by slug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from a2a_console.admin.agents.card_previews import previews
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.staff import HostWideAdmin, may_view, own_urls
from a2a_console.site import page_url, site
from a2a_console.statistics.counts import COUNTED
from a2a_console.statistics.reports import Line, report_agents
from a2a_console.times import moment
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents import switches as known_switches
from a2a_tasks.agents import versions as known_versions
from a2a_tasks.agents.declaration import AnnouncedAgent
from a2a_tasks.agents.security import is_listed, list_accepted, open_to_anybody
from a2a_tasks.conf import base_url, conf
from a2a_tasks.models import ALL, AgentSwitch, Grant, Worker
from a2a_tasks.store import switches, versions, workers
from a2a_tasks.store.switches import SwitchState

__all__ = ["AgentSwitchAdmin", "AgentStatus", "list_agent_statuses"]

#: The largest number of grants on the page of an agent.
GRANTS = 50


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


@dataclass(frozen=True)
class _Act:
    """A change to a switch: the function, the message when it is done, and the question before."""

    do: Callable[[str, str], bool]
    done: str
    question: Question | None = None


@admin.register(AgentSwitch, site=site)
class AgentSwitchAdmin(HostWideAdmin[AgentSwitch]):
    """The list of agents, and the page of one."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: the first change of a switch creates its row."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AgentSwitch | None = None) -> bool:
        """Refuse: the row says who changed the switch last."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show all agents on one page."""
        self._check_view(request)
        context = {
            **self._about(request, "Agents"),
            "statuses": list_agent_statuses(),
            "counted": COUNTED,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/a2a_tasks/agentswitch/list.html", context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Redirect from a row, to which Django's admin log links, to the page of its agent."""
        self._check_view(request)
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return HttpResponseRedirect(_page(row.slug))

    def agent_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show the page of an agent."""
        self._check_view(request)
        status = _find(slug)
        base = base_url(request.build_absolute_uri("/"))
        context = {
            **self._about(request, status.agent.name or slug),
            "status": status,
            "agent": status.agent,
            "set_at": moment(status.switch.at) if status.switch.pk else "",
            "may_switch": self.has_change_permission(request),
            "queues": sorted(
                {name for worker in workers.alive() if worker.slots for name in worker.queues}
            ),
            "agent_versions": versions.list_versions(slug),
            "seen": switches.identify_choice(status.switch),
            "cards": list(previews(status.agent, base)),
            "schemes": list_accepted(status.agent),
            "anonymous": open_to_anybody(status.agent),
            "listed": is_listed(status.agent),
            "grants": _grants(request, slug),
            "counted": COUNTED,
        }
        return TemplateResponse(request, "admin/a2a_tasks/agentswitch/page.html", context)

    @method_decorator(require_POST)
    def set_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Apply the posted change. Ask for confirmation before a change that stops work."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        status, back = _find(slug), HttpResponseRedirect(_page(slug))
        try:
            act = _act(status, request.POST)
            if act.question is not None and not is_confirmed(request):
                return ask(self, request, act.question)
            changed = act.do(slug, request.POST.get("reason", "")[:500])
        except ValueError as fault:
            self.message_user(request, str(fault), messages.ERROR)
            return back
        if not changed:
            self.message_user(request, "Nothing changed: it is so already.", messages.WARNING)
            return back
        self.log_change(request, switches.row_of(slug), act.done)
        self.message_user(request, act.done, messages.SUCCESS)
        return back

    def get_urls(self) -> list[URLPattern]:
        """Put the URLs by slug before Django's own."""
        views = {"agent/<slug:slug>/set/": self.set_view}
        page = self.admin_site.admin_view(self.agent_view)
        name = "a2a_tasks_agentswitch_agent"
        return [
            path("agent/<slug:slug>/", page, name=name),
            *own_urls(self, views),
            *super().get_urls(),
        ]

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _about(self, request: HttpRequest, title: str) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "opts": self.opts, "title": title}


def _page(slug: str) -> str:
    return page_url("a2a_tasks_agentswitch_agent", slug)


def _find(slug: str) -> AgentStatus:
    found = next((one for one in list_agent_statuses() if one.agent.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _grants(request: HttpRequest, slug: str) -> list[Grant] | None:
    """Return the grants for the agent or for all agents; None = the user may not view grants."""
    if not may_view(request, Grant):
        return None
    return list(Grant.objects.filter(Q(agent=slug) | Q(agent=ALL)).order_by("grantee")[:GRANTS])


# --- changes to a switch --------------------------------------------------------------------------


def _act(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    """Return the posted change. Raises ValueError for one that is not possible."""
    acts = {
        "enable": _enable,
        "drain": _drain,
        "disable": _disable,
        "limit": _limit,
        "queue": _queue,
        "serve": _serve,
        "canary": _canary,
        "rollback": _roll_back,
        "move": _move_conversations,
    }
    act = acts.get(form.get("do", ""))
    if act is None:
        raise ValueError("There is nothing of that name to be done.")
    return act(status, form)


def _state(state: SwitchState) -> Callable[[str, str], bool]:
    return lambda slug, reason: switches.set_state(slug, state, reason)


def _enable(status: AgentStatus, _: Mapping[str, str]) -> _Act:
    off = " A2A_DISABLED_AGENTS still disables it." if status.disabled else ""
    return _Act(_state(SwitchState.ON), f"The agent is enabled.{off}")


def _drain(status: AgentStatus, _: Mapping[str, str]) -> _Act:
    question = Question(
        title=f"Drain {status.agent.name}?",
        text=f"Within {_seconds()} seconds new tasks are refused (503, retry after a minute). Running and queued tasks "
        f"({status.statistics.running} and {status.statistics.queued}) continue; clients can still read, continue and cancel them.",
        verb="Drain",
        back=_page(status.agent.slug),
    )
    return _Act(_state(SwitchState.DRAINING), "The agent is draining.", question)


def _disable(status: AgentStatus, _: Mapping[str, str]) -> _Act:
    question = Question(
        title=f"Disable {status.agent.name}?",
        text=f"Within {_seconds()} seconds clients get 404 for this agent, its card and its tasks. "
        "Tasks that were accepted still finish.",
        warnings=[
            "Clients can no longer read their tasks. Drain the agent instead to let clients finish."
        ],
        verb="Disable",
        back=_page(status.agent.slug),
    )
    return _Act(_state(SwitchState.OFF), "The agent is disabled.", question)


def _limit(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    text = form.get("most", "").strip()
    if text and not text.isdecimal():
        raise ValueError("Enter a whole number, or leave the field empty.")
    limit = int(text) if text else None
    done = (
        "Concurrent runs are unlimited."
        if limit is None
        else f"Concurrent runs are limited to {limit}."
    )
    question = None
    if limit is not None and limit <= status.statistics.running:
        question = Question(
            title=f"Limit {status.agent.name} to {limit}?",
            text=f"{status.statistics.running} runs are active and continue. "
            + (
                f"No run begins until fewer than {limit} are active."
                if limit
                else "No run begins, and messages stay queued, until the limit is raised."
            ),
            verb="Set limit",
            back=_page(status.agent.slug),
        )
    return _Act(lambda slug, reason: switches.limit(slug, limit, reason), done, question)


def _queue(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    queue = form.get("queue", "").strip()
    wanted = queue or status.agent.queue
    question = None
    if not any(worker.slots for worker in workers.alive(wanted)):
        question = Question(
            title=f"Move {status.agent.name} to a queue without workers?",
            text=f"No live worker serves {wanted}. New runs wait until a worker does.",
            verb="Move",
            back=_page(status.agent.slug),
        )
    done = f"New runs go to the queue {wanted}. Queued runs stay in their queue."
    return _Act(lambda slug, reason: switches.move(slug, queue, reason), done, question)


def _serve(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    version = form.get("version", "")
    done = f"New conversations go to {f'version {version}' if version else 'the version that the host chooses'}."
    question = None
    if any(not one.workers for one in _list_named(status, version)):
        question = Question(
            title=f"Let a version without workers serve {status.agent.name}?",
            text=f"No live worker has version {version}. New conversations wait until one does.",
            verb="Let it serve",
            back=_page(status.agent.slug),
        )
    return _Act(lambda slug, reason: switches.serve(slug, version, reason), done, question)


def _list_named(status: AgentStatus, version: str) -> list[versions.VersionRow]:
    return [one for one in versions.list_versions(status.agent.slug) if one.version == version]


def _canary(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    version = form.get("version", "")
    try:
        percent = float(form.get("percent", ""))
    except ValueError:
        raise ValueError("Enter a share from 0 to 100, in percent.") from None
    done = f"Version {version} gets {percent:g} % of new conversations."
    return _Act(lambda slug, reason: switches.set_canary(slug, version, percent, reason), done)


def _roll_back(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    done = "The canary has ended." if status.switch.canary else "The version before serves again."
    return _Act(
        lambda slug, reason: switches.roll_back(slug, reason, seen=form.get("seen")),
        f"{done} Conversations stay with their versions.",
    )


def _move_conversations(status: AgentStatus, form: Mapping[str, str]) -> _Act:
    version, to = form.get("version", ""), form.get("to", "")
    question = Question(
        title=f"Move the conversations of version {version} to {to}?",
        text=f"All conversations with version {version} of {status.agent.name} continue with version {to}. "
        "Queued runs go with them; active runs end where they are.",
        verb="Move",
        back=_page(status.agent.slug),
    )
    done = f"The conversations of version {version} continue with version {to}."
    return _Act(lambda slug, _: versions.move_conversations(slug, version, to) >= 0, done, question)


def _seconds() -> str:
    return f"{float(conf.CREDENTIAL_SECONDS):g}"
