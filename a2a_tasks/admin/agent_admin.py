"""Agents: how each does, what it has to do and who may; switched, limited and moved while the host runs.

The rows are the switches. An agent without one is on as its class says, so that the pages go by slug.
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
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from a2a_tasks.admin.card_previews import previews
from a2a_tasks.admin.confirming import Question, ask, is_confirmed
from a2a_tasks.admin.shown import moment
from a2a_tasks.admin.staff import HostWideAdmin, may_view
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.security import accepted, listed, open_to_anybody
from a2a_tasks.conf import conf
from a2a_tasks.models import ALL, AgentSwitch, Grant, Worker
from a2a_tasks.store import switches, workers
from a2a_tasks.store.agent_figures import LOOKED, Health, Load, health, loads
from a2a_tasks.store.figures import in_words
from a2a_tasks.store.switches import SwitchState

__all__ = ["AgentSwitchAdmin", "Standing", "standings"]

#: Grants that the page of an agent lists.
GRANTS = 50


@dataclass(frozen=True, kw_only=True)
class Standing:
    """An agent, as its switch, its runs and the processes that have it tell of it."""

    agent: Agent
    switch: AgentSwitch
    load: Load
    health: Health
    #: The processes that take from its queue.
    workers: list[Worker]
    #: Of its card: version to the number of processes whose code has it.
    versions: Mapping[str, int]

    @property
    def state(self) -> str:
        """ "on", "draining" or "off"."""
        return "off" if self.disabled else str(self.switch.state)

    @property
    def disabled(self) -> bool:
        """Is it off by A2A_DISABLED_AGENTS, whatever its switch says?"""
        return self.agent.slug in registry.disabled()

    @property
    def p95(self) -> str:
        """How long 95 % of its tasks took at most, in words."""
        return in_words(self.health.p95, "s")

    @property
    def queue(self) -> str:
        """Where its runs wait."""
        return self.switch.queue or self.agent.queue


def standings() -> list[Standing]:
    """Of all agents, by slug; in a fixed number of bounded looks."""
    rows = {row.slug: row for row in AgentSwitch.objects.all()}
    there, (load, _), did = workers.alive(), loads(), health()
    return [
        _standing(agent, rows.get(slug) or AgentSwitch(slug=slug), there, load, did)
        for slug in registry.slugs()
        if (agent := registry.hosted(slug))
    ]


def _standing(
    agent: Agent,
    switch: AgentSwitch,
    there: list[Worker],
    load: Mapping[str, Load],
    did: Mapping[str, Health],
) -> Standing:
    versions: dict[str, int] = {}
    for worker in there:
        if version := worker.agents.get(agent.slug):
            versions[version] = versions.get(version, 0) + 1
    queue = switch.queue or agent.queue
    return Standing(
        agent=agent,
        switch=switch,
        load=load.get(agent.slug, Load()),
        health=did.get(agent.slug, Health()),
        workers=[w for w in there if queue in w.queues and w.slots and not w.draining],
        versions=versions,
    )


@dataclass(frozen=True)
class _Act:
    """Something to be set: what is done, and what is asked before."""

    do: Callable[[str, str], bool]
    done: str
    question: Question | None = None


@admin.register(AgentSwitch)
class AgentSwitchAdmin(HostWideAdmin[AgentSwitch]):
    """The list of agents, and the page of one."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: a row comes with the first switch."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AgentSwitch | None = None) -> bool:
        """Refuse: it tells who switched last."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """All of them on one page."""
        self._check_view(request)
        context = {
            **self._about(request, "Agents"),
            "standings": standings(),
            "looked": LOOKED,
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
        """Lead from a row, as the log of the admin names it, to the page of its agent."""
        self._check_view(request)
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return HttpResponseRedirect(_page(row.slug))

    def agent_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """The page of an agent."""
        self._check_view(request)
        standing = _find(slug)
        base_url = str(conf.PUBLIC_URL).rstrip("/") or request.build_absolute_uri("/").rstrip("/")
        context = {
            **self._about(request, standing.agent.name or slug),
            "standing": standing,
            "agent": standing.agent,
            "set_at": moment(standing.switch.at) if standing.switch.pk else "",
            "may_switch": self.has_change_permission(request),
            "queues": sorted(
                {name for worker in workers.alive() if worker.slots for name in worker.queues}
            ),
            "cards": list(previews(standing.agent, base_url)),
            "schemes": accepted(standing.agent),
            "anonymous": open_to_anybody(standing.agent),
            "listed": listed(standing.agent),
            "grants": _grants(request, slug),
            "looked": LOOKED,
        }
        return TemplateResponse(request, "admin/a2a_tasks/agentswitch/page.html", context)

    @method_decorator(require_POST)
    def set_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Set what was posted; what stops work is asked first."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        standing, back = _find(slug), HttpResponseRedirect(_page(slug))
        try:
            act = _act(standing, request.POST)
            if act.question is not None and not is_confirmed(request):
                return ask(self, request, act.question)
            changed = act.do(slug, request.POST.get("reason", "")[:500])
        except ValueError as fault:
            self.message_user(request, str(fault), messages.ERROR)
            return back
        if not changed:
            self.message_user(request, "It was so already.", messages.WARNING)
            return back
        self.log_change(request, switches.row_of(slug), act.done)
        self.message_user(request, act.done, messages.SUCCESS)
        return back

    def get_urls(self) -> list[URLPattern]:
        """Put the addresses by slug before the stock ones."""
        views = {"": ("agent", self.agent_view), "set/": ("set", self.set_view)}
        own = [
            path(
                f"agent/<slug:slug>/{end}",
                self.admin_site.admin_view(view),
                name=f"a2a_tasks_agentswitch_{name}",
            )
            for end, (name, view) in views.items()
        ]
        return [*own, *super().get_urls()]

    def _check_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied

    def _about(self, request: HttpRequest, title: str) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "opts": self.opts, "title": title}


def _page(slug: str) -> str:
    return reverse("admin:a2a_tasks_agentswitch_agent", args=[slug])


def _find(slug: str) -> Standing:
    found = next((one for one in standings() if one.agent.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _grants(request: HttpRequest, slug: str) -> list[Grant] | None:
    """Those that name the agent, or all agents; None = not for this user."""
    if not may_view(request, Grant):
        return None
    return list(Grant.objects.filter(Q(agent=slug) | Q(agent=ALL)).order_by("grantee")[:GRANTS])


# --- what may be set ------------------------------------------------------------------------------


def _act(standing: Standing, said: Mapping[str, str]) -> _Act:
    """What was posted. Raises ValueError for what cannot be set."""
    acts = {
        "enable": _enable,
        "drain": _drain,
        "disable": _disable,
        "limit": _limit,
        "queue": _queue,
    }
    act = acts.get(said.get("do", ""))
    if act is None:
        raise ValueError("There is nothing of that name to be done.")
    return act(standing, said)


def _state(state: SwitchState) -> Callable[[str, str], bool]:
    return lambda slug, reason: switches.set_state(slug, state, reason)


def _enable(standing: Standing, _: Mapping[str, str]) -> _Act:
    off = " It stays off by A2A_DISABLED_AGENTS." if standing.disabled else ""
    return _Act(_state(SwitchState.ON), f"The agent is switched on.{off}")


def _drain(standing: Standing, _: Mapping[str, str]) -> _Act:
    question = Question(
        title=f"Drain {standing.agent.name}?",
        text=f"New tasks are refused (503, come again in a minute) within {_seconds()} seconds. What runs and waits now "
        f"({standing.load.running} and {standing.load.queued}) goes on; tasks can still be read, continued and cancelled.",
        verb="Yes, drain it",
        back=_page(standing.agent.slug),
    )
    return _Act(_state(SwitchState.DRAINING), "The agent is being drained.", question)


def _disable(standing: Standing, _: Mapping[str, str]) -> _Act:
    question = Question(
        title=f"Switch off {standing.agent.name}?",
        text=f"Within {_seconds()} seconds it is to clients as if there were no such agent: no card, and its tasks cannot be "
        "read, continued or cancelled. What was accepted is finished.",
        warnings=["Its clients lose sight of their tasks. To let them finish, drain it."],
        verb="Yes, switch it off",
        back=_page(standing.agent.slug),
    )
    return _Act(_state(SwitchState.OFF), "The agent is switched off.", question)


def _limit(standing: Standing, said: Mapping[str, str]) -> _Act:
    text = said.get("most", "").strip()
    if text and not text.isdecimal():
        raise ValueError("A limit is a number, or nothing.")
    most = int(text) if text else None
    done = (
        "Any number of its runs may be under way."
        if most is None
        else f"At most {most} of its runs are under way at once."
    )
    question = None
    if most is not None and most <= standing.load.running:
        question = Question(
            title=f"Limit {standing.agent.name} to {most}?",
            text=f"{standing.load.running} of its runs are under way. They go on; none is begun before there are fewer than {most}."
            + (" Until the limit is raised, what is sent waits." if most == 0 else ""),
            verb="Yes, limit it",
            back=_page(standing.agent.slug),
        )
    return _Act(lambda slug, reason: switches.limit(slug, most, reason), done, question)


def _queue(standing: Standing, said: Mapping[str, str]) -> _Act:
    queue = said.get("queue", "").strip()
    wanted = queue or standing.agent.queue
    question = None
    if not any(worker.slots for worker in workers.alive(wanted)):
        question = Question(
            title=f"Move {standing.agent.name} to a queue nobody serves?",
            text=f"No living worker takes from {wanted}: what is sent from now on waits until one does.",
            verb="Yes, move it",
            back=_page(standing.agent.slug),
        )
    done = f"Its runs wait in {wanted} from now on; what waits already stays where it is."
    return _Act(lambda slug, reason: switches.move(slug, queue, reason), done, question)


def _seconds() -> str:
    return f"{float(conf.CREDENTIAL_SECONDS):g}"
