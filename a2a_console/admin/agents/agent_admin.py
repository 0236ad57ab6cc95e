"""Agents in the admin: health, load and grants of each. An agent is switched, limited and moved while the host runs.

The rows are the switches. An agent without a switch is on, with the values of its class, so the pages go by slug.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from a2a_console.admin.agents.agent_figures import (
    SAMPLE,
    TaskFigures,
    draw_day,
    read_figures,
    sum_today,
)
from a2a_console.admin.agents.card_previews import previews
from a2a_console.admin.attention import group_failures
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.staff import HostWideAdmin, demand, may_view, refuse
from a2a_console.site import page_url, site
from a2a_console.statistics.agent_status import AgentStatus, list_agent_statuses
from a2a_console.statistics.counts import COUNTED
from a2a_console.times import moment
from a2a_tasks.agents.security import is_listed, list_accepted, open_to_anybody
from a2a_tasks.conf import base_url, conf
from a2a_tasks.models import ALL, AgentSwitch, Grant, Task
from a2a_tasks.store import switches, versions, workers
from a2a_tasks.store.switches import SwitchState

__all__ = ["AgentSwitchAdmin"]

#: The largest number of grants on the page of an agent.
GRANTS = 50
#: The largest number of groups of failures.
FAILURES = 10


@dataclass(frozen=True)
class _Act:
    """A change to a switch: the function, the message when it is done, and the question before."""

    do: Callable[[str, str], bool]
    done: str
    question: Question | None = None


@admin.register(AgentSwitch, site=site)
class AgentSwitchAdmin(HostWideAdmin[AgentSwitch]):
    """The list of agents, and the page of one."""

    own_views = ("agent/<slug:slug>/set/",)

    #: The first change of a switch creates its row, which says who changed the switch last.
    has_add_permission = has_delete_permission = refuse

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show all agents on one page."""
        demand(self.has_view_permission(request))
        return self.show(
            request,
            "a2a_tasks/agentswitch/list",
            "Agents",
            statuses=list_agent_statuses(),
            counted=COUNTED,
            **(extra_context or {}),
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Redirect from a row, to which Django's admin log links, to the page of its agent."""
        demand(self.has_view_permission(request))
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return HttpResponseRedirect(_page(row.slug))

    def agent_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Show the page of an agent."""
        demand(self.has_view_permission(request))
        status = _find(slug)
        base = base_url(request.build_absolute_uri("/"))
        rows = versions.list_versions(slug)
        own = next((one.version for one in rows if not one.environment), status.agent.version)
        figures = read_figures(slug, own)
        day = timezone.now() - timedelta(days=1)
        shows_tasks = may_view(request, Task)
        context = {
            "status": status,
            "agent": status.agent,
            "set_at": moment(status.switch.at) if status.switch.pk else "",
            "may_switch": self.has_change_permission(request),
            "queues": sorted(
                {name for worker in workers.alive() if worker.slots for name in worker.queues}
            ),
            "agent_versions": [(one, figures.get(one.version, TaskFigures())) for one in rows],
            "own_version": own,
            "figures": figures.get("", TaskFigures()),
            "sample": SAMPLE,
            "costs": sum_today(slug) if shows_tasks else None,
            "chart": draw_day(slug) if shows_tasks else None,
            "failures": group_failures(request, lambda rows, _: rows, day, slug)[:FAILURES]
            if shows_tasks
            else [],
            "seen": switches.identify_choice(status.switch),
            "cards": list(previews(status.agent, base)),
            "schemes": list_accepted(status.agent),
            "anonymous": open_to_anybody(status.agent),
            "listed": is_listed(status.agent),
            "grants": _grants(request, slug),
            "counted": COUNTED,
        }
        title = status.agent.name or slug
        return self.show(request, "a2a_tasks/agentswitch/page", title, **context)

    @method_decorator(require_POST)
    def set_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Apply the posted change. Ask for confirmation before a change that stops work."""
        demand(self.has_change_permission(request))
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
        """Put the page by slug before Django's own."""
        page = self.admin_site.admin_view(self.agent_view)
        name = "a2a_tasks_agentswitch_agent"
        return [path("agent/<slug:slug>/", page, name=name), *super().get_urls()]


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
        is_dangerous=True,
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
    question, named = None, _list_named(status, version)
    if named:
        idle = f"No live worker has version {version}. New conversations wait until one does."
        question = Question(
            title=f"Let version {version} serve {status.agent.name}?",
            text=f"All new conversations go to version {version} at once. Conversations that have begun stay with their versions.",
            warnings=[idle for one in named if not one.workers],
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
    switch, question = status.switch, None
    done = "The canary has ended." if switch.canary else "The version before serves again."
    if switch.canary or switch.version_before is not None:
        before = switch.version_before or "that the host chooses"
        what = "the canary ends" if switch.canary else f"the version {before} gets them"
        question = Question(
            title=f"Roll back {status.agent.name}?",
            text=f"New conversations are affected at once: {what}. Conversations that have begun stay with their versions.",
            verb="Roll back",
            back=_page(status.agent.slug),
        )
    return _Act(
        lambda slug, reason: switches.roll_back(slug, reason, seen=form.get("seen")),
        f"{done} Conversations stay with their versions.",
        question,
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
