"""Work for people: tasks that wait for somebody, oldest first; given to somebody, and answered."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_tasks.admin import queue
from a2a_tasks.admin.assigning import ANSWER, CannotHave, candidates, found
from a2a_tasks.admin.paging import bounded_count
from a2a_tasks.admin.read_only import ReadOnlyAdmin
from a2a_tasks.agents import Part, file, registry
from a2a_tasks.models import Waiting
from a2a_tasks.operations import answer_task, hand_over
from a2a_tasks.operations.assign_task import WHOEVER, assign_by_key
from a2a_tasks.protocol.errors import (
    A2AError,
    InvalidParams,
    Overloaded,
    TaskNotFound,
    UnsupportedOperation,
)
from a2a_tasks.store.waiting import KINDS

__all__ = ["WaitingAdmin"]

#: Tasks given to somebody at once; each is a transaction of its own.
AT_ONCE = 200
UNKNOWN = "application/octet-stream"


@admin.register(Waiting)
class WaitingAdmin(ReadOnlyAdmin[Waiting]):
    """The queue, and what is done from it."""

    def has_view_permission(self, request: HttpRequest, obj: Waiting | None = None) -> bool:
        """Whoever may look at tasks may look at those that wait."""
        seen = ("a2a_tasks.view_task", "a2a_tasks.change_task", ANSWER)
        return any(map(request.user.has_perm, seen))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As for its page."""
        return self.has_view_permission(request)

    def has_answer_permission(self, request: HttpRequest) -> bool:
        """Whoever may answer may also say who does."""
        return request.user.has_perm(ANSWER)

    # -- looking

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The queue."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        asked = queue.Asked.of(request.GET.dict())
        may_answer = self.has_answer_permission(request)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Work for people",
            "asked": asked,
            "page": queue.page(asked, request.user),
            "waiting": bounded_count(asked.rows(request.user).order_by("-pk")),
            "who": [(key, words, asked.query(who=key)) for key, words in queue.WHO.items()],
            "agents": sorted({agent.slug for agent in registry.agents()} | {asked.agent} - {""}),
            "kinds": list(KINDS),
            "first": asked.query(),
            "may_answer": may_answer,
            "people": candidates(request.user) if may_answer else [],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/a2a_tasks/waiting/queue.html", context)

    def change_view(self, request: HttpRequest, object_id: str, *_: Any, **__: Any) -> HttpResponse:
        """What there is to see of a task is on its own page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        return HttpResponseRedirect(reverse("admin:a2a_tasks_task_change", args=[task.pk]))

    def history_view(self, request: HttpRequest, object_id: str, *_: Any) -> HttpResponse:
        """The same."""
        return self.change_view(request, object_id)

    # -- answering

    def answer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """A page to answer on; what could not be sent comes back on it, with the reason."""
        if not self.has_answer_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        if request.method != "POST":
            return self._answer_page(request, task)
        try:
            self._answer(request, task)
        except InvalidParams as fault:
            texts = [text for _, text in fault.violations] or [fault.message]
            return self._answer_page(request, task, "; ".join(texts), HTTPStatus.BAD_REQUEST)
        except A2AError as fault:
            return self._answer_page(request, task, fault.message, HTTPStatus(fault.http_status))
        self.log_change(request, task, "Answered.")
        self.message_user(request, f"Answered: {task.public_id[:40]}.", messages.SUCCESS)
        return self._back(request)

    def _answer(self, request: HttpRequest, task: Waiting) -> None:
        said = request.POST
        parts = answer_task.content(said.get("text", ""), said.get("data", ""), _files(request))
        event = said.get("event", "")
        async_to_sync(answer_task.answer_by_key)(
            task.pk,
            parts,
            by=request.user.get_username(),
            event=int(event) if event.isascii() and event.isdigit() and len(event) < 10 else 0,  # noqa: PLR2004 - longer than any number
        )

    def _answer_page(
        self,
        request: HttpRequest,
        task: Waiting,
        fault: str = "",
        status: HTTPStatus = HTTPStatus.OK,
    ) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Answer",
            "line": queue.line(task.pk),
            "fault": fault,
            "said": request.POST,
            "back": request.POST.get("back", ""),
        }
        return TemplateResponse(
            request, "admin/a2a_tasks/waiting/answer.html", context, status=status
        )

    # -- giving to somebody

    @method_decorator(require_POST)
    def assign_view(self, request: HttpRequest) -> HttpResponse:
        """Take, give to somebody, or release those that were chosen; the queue then tells what became of them."""
        if not self.has_answer_permission(request):
            raise PermissionDenied
        chosen = [key for key in request.POST.getlist("task") if key.isascii() and key.isdigit()]
        tasks = list(
            self.get_queryset(request)
            .filter(pk__in=[int(key) for key in chosen[:AT_ONCE] if len(key) < 19])  # noqa: PLR2004 - a key has no more
            .only("public_id", "tenant")
        )
        done, refused = 0, []
        for task in tasks:
            try:
                done += self._assign(request, task)
            except (CannotHave, A2AError) as fault:
                refused.append(f"{task.public_id[:40]}: {fault}")
        self._tell(request, done, refused, len(chosen) - len(tasks))
        return self._back(request)

    def _assign(self, request: HttpRequest, task: Waiting) -> bool:
        """Raises CannotHave, TaskNotFound, TaskNotWaiting, TaskTaken, Overloaded."""
        wish, to = request.POST.get("do", ""), None
        seen: int | None = WHOEVER
        if wish == "take":
            to, seen = found(request.user.get_username(), task.tenant).pk, None
        elif wish == "give":
            to = found(request.POST.get("to", "").strip(), task.tenant).pk
        return async_to_sync(assign_by_key)(task.pk, to, by=request.user.get_username(), seen=seen)

    def _tell(self, request: HttpRequest, done: int, refused: list[str], gone: int) -> None:
        verbs = {"take": "Taken", "give": "Given away"}
        verb = verbs.get(request.POST.get("do", ""), "Released")
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
        """A fresh link to hand over what a task asks for: shown on this page and nowhere again."""
        if not self.has_answer_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        try:
            link = async_to_sync(hand_over.fresh_link)(task.pk, by=request.user.get_username())
        except (TaskNotFound, UnsupportedOperation, Overloaded) as fault:
            self.message_user(request, f"{fault}.", messages.WARNING)
            return self._back(request)
        self.log_change(request, task, "Made a link to hand over a secret.")
        url = link.url if "://" in link.url else request.build_absolute_uri(link.url)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "A link that works once",
            "line": queue.line(task.pk),
            "url": url,
            "expires_at": link.expires_at,
            "back": _address(request),
        }
        return TemplateResponse(request, "admin/a2a_tasks/waiting/link.html", context)

    # -- addresses

    def _back(self, request: HttpRequest) -> HttpResponseRedirect:
        return HttpResponseRedirect(_address(request))

    def get_urls(self) -> list[URLPattern]:
        """What is done comes before the stock addresses, whose last one takes every path."""
        own: Iterable[tuple[str, str, Any]] = (
            ("assign/", "assign", self.assign_view),
            ("<int:object_id>/answer/", "answer", self.answer_view),
            ("<int:object_id>/link/", "link", self.link_view),
        )
        return [
            *(
                path(at, self.admin_site.admin_view(view), name=f"a2a_tasks_waiting_{name}")
                for at, name, view in own
            ),
            *super().get_urls(),
        ]


def _address(request: HttpRequest) -> str:
    """The queue as it was shown, whatever the form says of it."""
    said = QueryDict(request.POST.get("back", "")[:500]).dict()
    place = {"after": str(said["after"])} if "after" in said else {}
    asked = queue.Asked.of({name: str(text) for name, text in said.items()})
    kept = asked.query(**place) if asked.place else asked.query()
    return reverse("admin:a2a_tasks_waiting_changelist") + kept


def _files(request: HttpRequest) -> list[Part]:
    return [
        file(sent.read(), sent.name or "file", sent.content_type or UNKNOWN)
        for sent in request.FILES.getlist("files")
    ]
