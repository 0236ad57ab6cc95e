"""The inbox of the admin: tasks that wait for an operator, oldest first, to be assigned and answered."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_console.admin.tasks import queue
from a2a_console.admin.tasks.conversation import read_chapter
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin
from a2a_console.admin.widgets.staff import demand, may_view
from a2a_console.handover import hand_over
from a2a_console.queue import answer_task
from a2a_console.queue.assign_task import UNCHECKED, assign_by_key
from a2a_console.queue.assignees import ANSWER, CannotHave, candidates, find_user
from a2a_console.queue.budget_questions import list_questions, may_decide
from a2a_console.queue.form_fields import read_fields
from a2a_console.queue.waiting import KINDS
from a2a_console.search.bounded_rows import count_bounded
from a2a_console.site import page_url, site
from a2a_tasks.agents import Part, file, registry
from a2a_tasks.models import Task, Waiting
from a2a_tasks.protocol.errors import (
    A2AError,
    InvalidParams,
    Overloaded,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_tasks.protocol.jsontext import write

__all__ = ["WaitingAdmin"]

#: The largest number of tasks that are assigned at once; each has its own transaction.
AT_ONCE = 200
UNKNOWN = "application/octet-stream"


@admin.register(Waiting, site=site)
class WaitingAdmin(ReadOnlyAdmin[Waiting]):
    """The inbox and its actions."""

    own_views = ("assign/", "answer_many/", "<int:object_id>/answer/", "<int:object_id>/link/")

    def has_view_permission(self, request: HttpRequest, obj: Waiting | None = None) -> bool:
        """Allow users that may view, cancel or answer tasks."""
        seen = ("a2a_tasks.view_task", "a2a_tasks.change_task", ANSWER)
        return any(map(request.user.has_perm, seen))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Allow users that may view the page."""
        return self.has_view_permission(request)

    def has_answer_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may answer and assign."""
        return request.user.has_perm(ANSWER)

    # -- the list

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the inbox."""
        demand(self.has_view_permission(request))
        filters = queue.InboxQuery.of(request.GET.dict())
        may_answer = self.has_answer_permission(request)
        page = queue.page(filters, request.user)
        return self.show(
            request,
            "a2a_tasks/waiting/queue",
            "Inbox",
            filters=filters,
            page=page,
            chapter=read_chapter(page.chosen.task)
            if page.chosen and may_view(request, Task)
            else None,
            rest=_make_back(request),
            back=_make_back(request, page.then),
            here=_make_back(request, page.chosen.key if page.chosen else ""),
            waiting=count_bounded(filters.rows(request.user).order_by("-pk")),
            budgets=list_questions(request.user),
            may_decide=may_decide(request.user),
            who=[(key, words, filters.query(who=key)) for key, words in queue.WHO.items()],
            agents=sorted({agent.slug for agent in registry.agents()} | {filters.agent} - {""}),
            kinds=list(KINDS),
            first=filters.query(),
            may_answer=may_answer,
            people=candidates(request.user) if may_answer else [],
            **(extra_context or {}),
        )

    def change_view(self, request: HttpRequest, object_id: str, *_: Any, **__: Any) -> HttpResponse:
        """Redirect to the page of the task."""
        demand(self.has_view_permission(request))
        task = self.get_object(request, object_id)
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", task.pk))

    def history_view(self, request: HttpRequest, object_id: str, *_: Any) -> HttpResponse:
        """Redirect to the page of the task."""
        return self.change_view(request, object_id)

    # -- answering

    def answer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form of an answer, or send the posted answer. A refused one is shown again, with the reason."""
        demand(self.has_answer_permission(request))
        task = self.get_object(request, object_id)
        if request.method != "POST":
            return self._answer_page(request, task)
        try:
            self._answer(request, task)
        except InvalidParams as fault:
            texts = [" ".join(one) for one in fault.violations] or [fault.message]
            return self._answer_page(request, task, "; ".join(texts), HTTPStatus.BAD_REQUEST)
        except A2AError as fault:
            return self._answer_page(request, task, fault.message, HTTPStatus(fault.http_status))
        self.log_change(request, task, "Answered.")
        self.message_user(request, f"Answered: {task.public_id[:40]}.", messages.SUCCESS)
        self._answer_others(request, task)
        if request.POST.get("back") == "task":
            return HttpResponseRedirect(page_url("a2a_tasks_task_change", task.pk))
        return self._back(request)

    def _answer_others(self, request: HttpRequest, task: Waiting) -> None:
        """Send the answer to the other selected tasks, and tell which of them did not take it."""
        done = 0
        for other in self._list_chosen(request).exclude(pk=task.pk):
            try:
                self._answer(request, other, other.last_event)
            except A2AError as fault:
                self.message_user(
                    request, f"{other.public_id[:40]}: {fault.message}", messages.WARNING
                )
            else:
                self.log_change(request, other, "Answered.")
                done += 1
        if done:
            self.message_user(request, f"Answered alike: {done}.", messages.SUCCESS)

    @method_decorator(require_POST)
    def answer_many_view(self, request: HttpRequest) -> HttpResponse:
        """Show one form for those of the selected tasks that ask the same as the first of them."""
        demand(self.has_answer_permission(request))
        lines = queue.get_rows([task.pk for task in self._list_chosen(request)])
        if not lines:
            return self._back(request)
        alike = [one for one in lines if one.asks_as(lines[0])]
        if len(alike) < len(lines):
            text = f"{len(lines) - len(alike)} of the selected tasks ask something else, and are left out."
            self.message_user(request, text, messages.WARNING)
        return self._answer_page(request, alike[0].task, others=alike[1:])

    def _list_chosen(self, request: HttpRequest) -> QuerySet[Waiting]:
        chosen = [key for text in request.POST.getlist("task") if (key := queue.read_key(text))]
        rows = self.get_queryset(request).filter(pk__in=chosen[:AT_ONCE])
        return rows.only("public_id", "tenant", "last_event")

    def _answer(self, request: HttpRequest, task: Waiting, event: int | None = None) -> None:
        form = request.POST
        data, line = form.get("data", ""), queue.get_row(task.pk)
        if line is not None and line.form and not data.strip():
            data = write(read_fields(line.form, form.dict())).decode()
        parts = answer_task.content(form.get("text", ""), data, _files(request))
        async_to_sync(answer_task.answer_by_key)(
            task.pk,
            parts,
            by=request.user.get_username(),
            event=queue.read_key(form.get("event", "")[:9]) if event is None else event,
        )

    def _answer_page(
        self,
        request: HttpRequest,
        task: Task,
        fault: str = "",
        status: HTTPStatus = HTTPStatus.OK,
        *,
        others: Sequence[queue.InboxRow] = (),
    ) -> HttpResponse:
        page = self.show(
            request,
            "a2a_tasks/waiting/answer",
            "Answer",
            line=queue.get_row(task.pk, request.POST.dict()),
            others=others,
            fault=fault,
            said=request.POST,
            back=request.POST.get("back", ""),
        )
        page.status_code = status
        return page

    # -- assignment

    @method_decorator(require_POST)
    def assign_view(self, request: HttpRequest) -> HttpResponse:
        """Claim, assign or unassign the selected tasks; messages on the inbox then tell the result."""
        demand(self.has_answer_permission(request))
        chosen, tasks = request.POST.getlist("task"), list(self._list_chosen(request))
        done, refused = 0, []
        for task in tasks:
            try:
                done += self._assign(request, task)
            except (CannotHave, A2AError) as fault:
                refused.append(f"{task.public_id[:40]}: {fault}")
        self._tell(request, done, refused, len(chosen) - len(tasks))
        return self._back(request)

    def _assign(self, request: HttpRequest, task: Waiting) -> bool:
        """Assign one task. Raises CannotHave, TaskNotFound, TaskNotWaiting, TaskTaken, Overloaded."""
        wish, to = request.POST.get("do", ""), None
        seen: int | None = UNCHECKED
        if wish == "take":
            to, seen = find_user(request.user.get_username(), task.tenant).pk, None
        elif wish == "give":
            to = find_user(request.POST.get("to", "").strip(), task.tenant).pk
        return async_to_sync(assign_by_key)(task.pk, to, by=request.user.get_username(), seen=seen)

    def _tell(self, request: HttpRequest, done: int, refused: list[str], gone: int) -> None:
        verbs = {"take": "Claimed", "give": "Assigned"}
        verb = verbs.get(request.POST.get("do", ""), "Unassigned")
        self.message_user(request, f"{verb}: {done}.", messages.SUCCESS if done else messages.INFO)
        for text in refused[:10]:
            self.message_user(request, text, messages.WARNING)
        if gone > 0:
            note = f"Not there, or more than {AT_ONCE} at once: {gone}."
            self.message_user(request, note, messages.WARNING)

    # -- secrets

    @method_decorator(require_POST)
    @method_decorator(never_cache)
    def link_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show a fresh link that hands over the requested secrets. It is shown on this page only."""
        demand(self.has_answer_permission(request))
        task = self.get_object(request, object_id)
        try:
            link = async_to_sync(hand_over.fresh_link)(task.pk, by=request.user.get_username())
        except (TaskNotFound, UnsupportedOperation, Overloaded) as fault:
            self.message_user(request, f"{fault}.", messages.WARNING)
            return self._back(request)
        self.log_change(request, task, "Made a link to hand over a secret.")
        url = link.url if "://" in link.url else request.build_absolute_uri(link.url)
        return self.show(
            request,
            "a2a_tasks/waiting/link",
            "A link that works once",
            line=queue.get_row(task.pk),
            url=url,
            expires_at=link.expires_at,
            back=_address(request),
        )

    # -- URLs

    def _back(self, request: HttpRequest) -> HttpResponseRedirect:
        return HttpResponseRedirect(_address(request))


def _make_back(request: HttpRequest, task: str = "") -> str:
    """Return the query of the inbox as it is shown, with another task open."""
    query = request.GET.copy()
    query.pop("task", None)
    if task:
        query["task"] = task
    return query.urlencode()


def _address(request: HttpRequest) -> str:
    """Return the URL of the inbox as it was shown. Invalid parameters in the form are dropped."""
    query = {
        name: str(text) for name, text in QueryDict(request.POST.get("back", "")[:500]).items()
    }
    filters = queue.InboxQuery.of(query)
    kept = {"after": query["after"]} if filters.place else {}
    kept |= {"task": str(filters.task)} if filters.task else {}
    return page_url("a2a_tasks_waiting_changelist") + filters.query(**kept)


def _files(request: HttpRequest) -> list[Part]:
    return [
        file(sent.read(), sent.name or "file", sent.content_type or UNKNOWN)
        for sent in request.FILES.getlist("files")
    ]
