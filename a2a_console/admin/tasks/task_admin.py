"""Tasks in the admin: the list, the page with the timeline, cancellation, running again, export."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, cast

import msgspec
from asgiref.sync import async_to_sync
from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import storages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.http import content_disposition_header, urlencode
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_console.admin.tasks import raw_json, task_page, timeline
from a2a_console.admin.tasks.task_filters import OFFERED, UnknownFilter, read_selection, split_line
from a2a_console.admin.tasks.task_list import COLUMNS, TaskChangeList, find_neighbours
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.columns import ago, column, cut
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.inert import part_of, send_file
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, Rows, badge
from a2a_console.admin.widgets.staff import demand
from a2a_console.bulk import actions as bulk
from a2a_console.bulk import jobs
from a2a_console.bulk.export import stream_export
from a2a_console.rerun.run_again import MAX_NONCE_LENGTH, CannotRunAgain, run_again
from a2a_console.search.bounded_rows import COUNTED
from a2a_console.search.selection import Selection
from a2a_console.search.stuck_tasks import MAX_COUNT
from a2a_console.site import page_url, site
from a2a_console.times import duration, moment
from a2a_tasks.agents import registry
from a2a_tasks.audit import Action
from a2a_tasks.models import LONG_COLUMNS, SavedView, StoredFile, Task
from a2a_tasks.operations import cancel_task
from a2a_tasks.protocol.errors import Overloaded, TaskNotCancelable, TaskNotFound
from a2a_tasks.protocol.lifecycle import TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit
from a2a_tasks.store.files import STORAGE

__all__ = ["TaskAdmin"]

#: Columns to choose, by their names in the address.
MORE = {
    "id": "id_cell",
    "context": "context_link",
    "exact": "exact",
    "events": "last_event",
    "protocol": "origin_dialect",
    "transport": "origin_binding",
}
#: The largest number of new tasks that is told, and of keys that are searched for them.
NEWS, NEWS_READ = 100, 10_000
#: The largest number of views of a user, and the longest name and query of one.
VIEWS, VIEW_NAME, VIEW_LENGTH = 50, 60, 2_000
_CHECKBOX = (
    '<input type="checkbox" name="{}" value="{}" class="action-select"'
    ' aria-label="Select this object for an action - {}">'
)


@admin.register(Task, site=site)
class TaskAdmin(ReadOnlyAdmin[Task]):
    """The list and the page of tasks."""

    list_display = ("asked", "state_badge", "agent_cut", "who", "why", "took", "when")
    list_select_related = ("context",)
    search_fields = ("public_id",)
    actions = ("cancel_selected", "run_again_selected")
    change_list_template = "admin/a2a_tasks/task/list.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Return the tasks without their bodies; the page reads these in slices."""
        rows = super().get_queryset(request).select_related("context")
        return rows.defer(*LONG_COLUMNS)

    def search(self, request: HttpRequest, rows: Rows, wanted: str) -> Rows:
        """Find by id or by the first message (`Selection.search`)."""
        return Selection(search=wanted).of(rows)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list. Filters in the search line go into the address; an unknown one finds nothing (400)."""
        found, rest = split_line(request.GET.get(SEARCH_VAR, ""))
        if request.method == "GET" and found:
            query = request.GET.copy()
            for name in TaskChangeList.CURSORS:
                query.pop(name, None)
            for name, value in {**found, SEARCH_VAR: rest}.items():
                query[name] = value
            return HttpResponseRedirect(f"?{query.urlencode()}")
        ours = {
            "export_forms": [("csv", "CSV"), ("jsonl", "JSON")],
            "offered": OFFERED,
            "first_agent": next((agent.slug for agent in registry.agents()), ""),
            "columns": [(name, name in request.GET.getlist(COLUMNS)) for name in MORE],
            "views": SavedView.objects.filter(user=request.user.pk).order_by("name")[:VIEWS],
        }
        answer = super().changelist_view(request, {**(extra_context or {}), **ours})
        shown = getattr(answer, "context_data", None) or {}
        if "cl" in shown and shown["cl"].fault:
            answer.status_code = HTTPStatus.BAD_REQUEST
        return answer

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Return the columns, with those that the user has chosen."""
        chosen = request.GET.getlist(COLUMNS)
        return [*self.list_display, *(shown for name, shown in MORE.items() if name in chosen)]

    @method_decorator(require_POST)
    def views_view(self, request: HttpRequest) -> HttpResponse:
        """Save the view of the list under a name for this user, or remove it."""
        demand(self.has_view_permission(request))
        name = request.POST.get("name", "").replace("\0", "").strip()[:VIEW_NAME]
        query = QueryDict(request.POST.get("query", "")).urlencode()
        mine: Any = SavedView.objects.filter(user=request.user.pk)
        with transaction.atomic():
            if "remove" in request.POST:
                mine.filter(name=name).delete()
            elif name and len(query) <= VIEW_LENGTH and mine.count() < VIEWS:
                mine.update_or_create(user=request.user, name=name, defaults={"query": query})
            else:
                self.message_user(request, "The view was not saved.", messages.ERROR)
            audit.note(Action.VIEW_SAVE, name)
        return HttpResponseRedirect(f"{page_url('a2a_tasks_task_changelist')}?{query}")

    def news_view(self, request: HttpRequest) -> HttpResponse:
        """Return how many tasks of the list are newer than its first page, as a link; 204 = none."""
        if not (self.admin_site.has_permission(request) and self.has_view_permission(request)):
            return _tell_gone(request)
        try:
            wanted = read_selection(request.GET)
        except UnknownFilter:
            return _tell_gone(request)
        top = _number(request, "top")
        rows = self.get_queryset(request).filter(pk__gt=top, pk__lte=top + NEWS_READ)
        count = wanted.of(rows).order_by("pk").values("pk")[:NEWS].count()
        if not count:
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        query = request.GET.copy()
        query.pop("top", None)
        more = "+" if count == NEWS else ""
        link = '<a class="a2a-pill" href="?{}">{}{} new</a>'
        return HttpResponse(format_html(link, query.urlencode(), count, more))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TaskChangeList]:
        """Return the list that pages by key."""
        return TaskChangeList

    # -- columns and fields

    def action_checkbox(self, obj: Task) -> SafeString:
        """Show Django's checkbox without a widget and a template for each row: they took a sixth of the page's time."""
        return format_html(_CHECKBOX, ACTION_CHECKBOX_NAME, obj.pk, obj)

    @admin.display(description="request")
    def asked(self, task: Task) -> str:
        """Show the beginning of the first message; without one the id, which a client may have chosen."""
        opening = getattr(task, "opening", "")
        shown = Truncator(opening).chars(task_page.TITLE) or escape_name(task.public_id, 40)
        return format_html('<span title="{}">{}</span>', opening or task.public_id, shown)

    state_badge = column("state", lambda row: badge(TaskState(row.state).word))

    @admin.display(description="caller")
    def who(self, task: Task) -> str:
        """Link from the caller who made the task to all of its tasks; the tenant stands beside it."""
        caller, tenant = task.created_by or task.owner, ""
        if task.tenant:
            tenant = format_html(' <span class="a2a-cut a2a-quiet">{}</span>', task.tenant)
        if not caller:
            return format_html("anonymous{}", tenant)
        link = principals.link_to(caller, getattr(task, "caller_name", ""), "a2a-cut")
        return format_html("{}{}", link, tenant)

    @admin.display(description="reason or result")
    def why(self, task: Task) -> str:
        """Show the error, the question, the reason or what was said last."""
        text = getattr(task, "why", "")
        return format_html('<span class="a2a-why" title="{}">{}</span>', text, text)

    @admin.display(description="took")
    def took(self, task: Task) -> str:
        """Show how long the task took, or has taken so far."""
        return duration(
            (task.status_at if task.state in TERMINAL else timezone.now()) - task.created_at
        )

    agent_cut = column("agent", lambda task: cut(task.agent))
    when = column("created", lambda task: ago(task.created_at))
    # columns to choose
    id_cell = column("id", lambda task: _cut(task.public_id))
    context_link = column("context", lambda task: _link_context(task))
    exact = column("exact time", lambda task: moment(task.created_at))

    # -- the page

    @method_decorator(csp_update({"media-src": [SELF]}))
    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the page of a task, which may hold audio. The public id in the URL redirects to the page."""
        demand(self.has_view_permission(request) and request.method != "POST")
        name = unquote(object_id)
        is_key = name.isascii() and name.isdigit() and len(name) < 19  # noqa: PLR2004 - a key has no more
        rows = self.get_queryset(request)
        task = rows.filter(pk=int(name)).first() if is_key else None
        if task is None:
            return self.find_view(request, name)
        return self.show(
            request,
            "a2a_tasks/task/page",
            task_page.read_title(task),
            neighbours=find_neighbours(rows, task, request.GET.get(task_page.LIST, "")),
            **{**self._read_top(request, task), **task_page.read_tab(request, task)},
        )

    def find_view(self, request: HttpRequest, public_id: str) -> HttpResponse:
        """Redirect to the page of the task with this public id; to the list if two owners have chosen the same."""
        demand(self.has_view_permission(request))
        tasks = self.get_queryset(request).filter(public_id=public_id)
        found = list(tasks.values_list("pk", flat=True)[:2])
        if not found:
            raise Http404
        if len(found) > 1:
            query = urlencode({"q": public_id})
            return HttpResponseRedirect(f"{page_url('a2a_tasks_task_changelist')}?{query}")
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", *found))

    def _read_top(self, request: HttpRequest, task: Task) -> dict[str, Any]:
        """Return the context of the upper part, with its buttons."""
        is_open = task.state not in TERMINAL
        may_run = not is_open and self.has_run_again_permission(request)
        return {
            **task_page.read_top(request, task),
            "may_cancel": is_open and self.has_cancel_permission(request),
            # A second click sends the same nonce, so it starts no second task.
            "again": uuid.uuid4().hex if may_run else "",
        }

    def live_view(self, request: HttpRequest, object_id: str, part: str) -> HttpResponse:
        """Return a part of the page as it is now: the upper one or the tab; 204 if the tab has not changed.

        A browser whose user is signed out gets a notice instead of the login, and stops polling.
        """
        if not self.admin_site.has_permission(request) or not self.has_view_permission(request):
            return _tell_gone(request)
        try:
            task = self.get_object(request, object_id)
        except Http404:
            return _tell_gone(request)
        if part == "top":
            shown = self._read_top(request, task)
            return render(request, "admin/a2a_tasks/task/top.html", shown)
        shown = task_page.read_tab(request, task)
        html = render_to_string("admin/a2a_tasks/task/tab.html", shown, request)
        mark = hashlib.sha256(html.encode()).hexdigest()[:16]
        if shown["follows"] and mark == request.GET.get("mark"):
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        poll = render_to_string(
            "admin/a2a_tasks/task/poll.html", {**shown, "part": part, "mark": mark}
        )
        return HttpResponse(html + poll if shown["follows"] else html)

    # -- cancelling and running again

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may cancel. The permission `change task` means this and nothing else here."""
        return request.user.has_perm("a2a_tasks.change_task")

    def has_run_again_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run tasks again, which costs as much as a new task."""
        return request.user.has_perm("a2a_tasks.run_again_task")

    @admin.action(description="Cancel selected tasks …", permissions=["cancel"])
    def cancel_selected(
        self, request: HttpRequest, queryset: QuerySet[Task]
    ) -> HttpResponse | None:
        """Ask whether to cancel the selected tasks that have not ended."""
        return self._ask(request, queryset, bulk.CANCEL)

    @admin.action(description="Run selected tasks again …", permissions=["run_again"])
    def run_again_selected(
        self, request: HttpRequest, queryset: QuerySet[Task]
    ) -> HttpResponse | None:
        """Ask whether to run the selected tasks again that have ended."""
        return self._ask(request, queryset, bulk.AGAIN)

    def _ask(
        self, request: HttpRequest, queryset: QuerySet[Task], action: bulk.BulkAction
    ) -> HttpResponse | None:
        """Ask, with the tasks counted up to COUNTED. The form has the selection of the list, or the keys."""
        rows = queryset.select_related(None).only("pk", "state", "agent")
        plan = bulk.plan(action, rows, limit=COUNTED)
        if not plan.keys:
            note = f"{plan.others} of the selected tasks {action.impossible}."
            self.message_user(request, note, messages.WARNING)
            return None
        across = request.POST.get("select_across") == "1"
        selection = read_selection(request.GET) if across else Selection()
        if selection.stuck and len(plan.keys) + plan.others >= MAX_COUNT:
            # There may be more than are found at once: the job finds them when these are done.
            plan = replace(plan, more=True)
        choice = bulk.Choice(
            selection=selection,
            keys=None if across else plan.keys,
            found=len(plan.keys),
            more=plan.more,
        )
        return self.show(
            request,
            "a2a_tasks/task/bulk",
            action.title,
            action=action,
            plan=plan,
            found=f"{len(plan.keys):,}{'+' if plan.more else ''}",
            choice=choice.write(),
            query=request.GET.urlencode(),
        )

    @method_decorator(require_POST)
    def bulk_view(self, request: HttpRequest, action: str) -> HttpResponse:
        """Begin a job for those of the selected tasks that the user sees."""
        if action not in bulk.ACTIONS:
            raise Http404
        may = request.user.has_perm(bulk.ACTIONS[action].permission)
        demand(self.has_view_permission(request) and may)
        try:
            choice = bulk.Choice.read(request.POST.get("choice", ""))
        except msgspec.DecodeError as fault:
            raise SuspiciousOperation("the choice of tasks cannot be read") from fault
        nonce = request.POST.get("nonce", "").replace("\0", "")[:MAX_NONCE_LENGTH]
        query = QueryDict(request.POST.get("query", "")).urlencode()
        user: Any = request.user
        nonce = nonce or uuid.uuid4().hex
        job = jobs.begin(action, choice, user=user, nonce=nonce, query=query)
        return HttpResponseRedirect(page_url("a2a_tasks_bulkjob_change", job.pk))

    @method_decorator(require_POST)
    def run_again_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then run the task again and show the new one."""
        demand(self.has_run_again_permission(request))
        task = self.get_object(request, object_id)
        if not is_confirmed(request):
            question = Question(
                title="Run the task again?",
                text=f"A new task of {task.agent} begins, of the same owner and in the same context, by the first message of "
                f"task {task.public_id}, which stays as it is. Webhooks are not taken over.",
                warnings=[
                    "What the agent did before it may do twice: steps of the old task are not remembered."
                ],
                verb="Run again",
                back=page_url("a2a_tasks_task_change", task.pk),
            )
            return ask(self, request, question)
        nonce = request.POST.get("nonce", "")[:MAX_NONCE_LENGTH] or uuid.uuid4().hex
        try:
            again = async_to_sync(run_again)(task.pk, nonce=nonce)
        except (CannotRunAgain, TaskNotFound, Overloaded) as why:
            self.message_user(request, f"Not run again. {why}.", messages.WARNING)
            return HttpResponseRedirect(page_url("a2a_tasks_task_change", task.pk))
        if again.before:
            note = f"Run again earlier by the same request, as {again.id}."
            self.message_user(request, note, messages.WARNING)
        else:
            self.log_change(request, task, f"Run again as {again.id}.")
            self.message_user(request, f"Run again as {again.id}.", messages.SUCCESS)
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", again.task))

    # -- export, cancelling one task

    @method_decorator(require_POST)
    def export_view(self, request: HttpRequest, form: str) -> HttpResponseBase:
        """Stream the tasks of the list, on all its pages."""
        demand(self.has_view_permission(request))
        wanted = cast("TaskChangeList", self.get_changelist_instance(request))
        return stream_export(form, wanted.queryset.order_by("-pk"), wanted.selection)

    @method_decorator(require_POST)
    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then cancel the task."""
        demand(self.has_cancel_permission(request))
        task = self.get_object(request, object_id)
        if not is_confirmed(request):
            question = Question(
                title="Cancel the task?",
                text=f"Task {task.public_id} of {task.agent} becomes canceled at once, for its client, too; then its agent is "
                "stopped.",
                warnings=["This cannot be undone. The task may be run again, as a new task."],
                verb="Cancel task",
                is_dangerous=True,
                back=page_url("a2a_tasks_task_change", task.pk),
            )
            return ask(self, request, question)
        try:
            async_to_sync(cancel_task.cancel_by_key)(task.pk, by=request.user.get_username())
        except (TaskNotCancelable, TaskNotFound, Overloaded) as why:
            self.message_user(request, f"Not canceled. {why}.", messages.WARNING)
        else:
            self.log_change(request, task, "Canceled.")
            self.message_user(request, "The task is canceled.", messages.SUCCESS)
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", task.pk))

    # -- files, parts and JSON

    def file_view(
        self, request: HttpRequest, object_id: str, file_id: uuid.UUID
    ) -> HttpResponseBase:
        """Send a file of the task to users who may see the task: images and audio inline, all else as a download."""
        task = self._get_visible(request, object_id)
        file = get_object_or_404(StoredFile, pk=file_id, task=task)
        try:
            content = storages[STORAGE].open(file.name)
        except FileNotFoundError:
            raise Http404 from None
        return send_file(content, file.media_type, file.filename, show="show" in request.GET)

    def part_view(
        self, request: HttpRequest, object_id: str, place: str, number: int, index: int
    ) -> HttpResponseBase:
        """Send one part of an event, an artifact or the status: images and audio inline, all else as a download."""
        task = self._get_visible(request, object_id)
        body = timeline.body_of(task.pk, place, number)
        found = part_of(body, index) if body else None
        if found is None:
            raise Http404
        return send_file(*found, show="save" not in request.GET)

    def json_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send the JSON of the task in a dialect as a download."""
        task = self._get_visible(request, object_id)
        dialect = raw_json.dialect_of(request.GET.get("dialect", ""), task)
        if raw_json.count_characters(task) > raw_json.LARGEST:
            raise Http404
        name = content_disposition_header(True, f"task-{task.pk}.{dialect.code}.json")
        body = raw_json.write_answer(task, dialect)
        answer = HttpResponse(body, content_type="application/json")
        answer.headers["Content-Disposition"] = name or "attachment"
        return answer

    def _get_visible(self, request: HttpRequest, object_id: str) -> Task:
        """Return the task. Raises Http404 if the user may not see it."""
        task = self.get_object(request, object_id)
        if not self.has_view_permission(request, task):
            raise Http404
        return task

    def get_urls(self) -> list[URLPattern]:
        """Put our own URLs before Django's, the last of which matches every path."""
        view = self.admin_site.admin_view
        ours: dict[str, tuple[str, Callable[..., Any]]] = {
            "bulk": ("bulk/<slug:action>/", view(self.bulk_view)),
            "views": ("views/", view(self.views_view)),
            "news": ("news/", never_cache(self.news_view)),
            "export": ("export.<slug:form>", view(self.export_view)),
            "cancel": ("<int:object_id>/cancel/", view(self.cancel_view)),
            "again": ("<int:object_id>/run-again/", view(self.run_again_view)),
            "file": ("<int:object_id>/files/<uuid:file_id>/", view(self.file_view)),
            "part": (
                "<int:object_id>/parts/<str:place>/<int:number>/<int:index>/",
                view(self.part_view),
            ),
            "json": ("<int:object_id>/json/", view(self.json_view)),
            "live": ("<int:object_id>/live/<slug:part>/", never_cache(self.live_view)),
            # No redirect to the login, which would end up inside the page: a user who is signed out sees a notice.
        }
        return [
            *(
                path(where, shown, name=f"a2a_tasks_task_{name}")
                for name, (where, shown) in ours.items()
            ),
            *super().get_urls(),
        ]


def _cut(text: str) -> SafeString:
    return format_html('<span class="a2a-id" title="{}">{}</span>', text, text)


def _link_context(task: Task) -> SafeString:
    url = page_url("a2a_tasks_context_change", task.context_id)
    return format_html('<a href="{}">{}</a>', url, _cut(task.context.public_id))


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    # The database would refuse a number that is longer than any event's.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004


def _tell_gone(request: HttpRequest) -> HttpResponse:
    return render(request, "admin/a2a_tasks/task/gone.html", status=HTTPStatus.NOT_FOUND)
