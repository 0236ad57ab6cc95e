"""Tasks in the admin: the list, the page with the timeline, cancellation, running again, export."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.files.storage import storages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.http import content_disposition_header, urlencode
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from a2a_console.admin.tasks import bulk, raw_json, timeline, timeline_page
from a2a_console.admin.tasks.cancelling import Outcome, cancel
from a2a_console.admin.tasks.export import stream_export
from a2a_console.admin.tasks.header import header
from a2a_console.admin.tasks.task_filters import FILTERS
from a2a_console.admin.tasks.task_list import TaskChangeList
from a2a_console.admin.webhooks.task_section import webhooks
from a2a_console.admin.widgets import principals
from a2a_console.admin.widgets.columns import column
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.inert import part_of, send_file
from a2a_console.admin.widgets.paging import AtLeast
from a2a_console.admin.widgets.parts import Reading
from a2a_console.admin.widgets.read_only import ReadOnlyAdmin, badge
from a2a_console.rerun.run_again import MAX_NONCE_LENGTH, Again
from a2a_console.search.selection import Selection
from a2a_console.site import page_url, site
from a2a_console.times import duration, moment
from a2a_tasks.audit import Action
from a2a_tasks.models import LONG_COLUMNS, AuditEntry, Message, StoredFile, Task
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import audit, event_log
from a2a_tasks.store.files import STORAGE

__all__ = ["TaskAdmin"]

#: The largest number of new tasks that a message names.
NAMED = 3
#: The largest number of repetitions on the page of a task.
RELATED = 20
_CHECKBOX = (
    '<input type="checkbox" name="{}" value="{}" class="action-select"'
    ' aria-label="Select this object for an action - {}">'
)


@admin.register(Task, site=site)
class TaskAdmin(ReadOnlyAdmin[Task]):
    """The list and the page of tasks."""

    list_display = (
        "short_id",
        "opening_cut",
        "state_badge",
        "agent_and_owner",
        "created_and_lasted",
        "context_link",
    )
    list_filter = FILTERS
    list_select_related = ("context",)
    search_fields = ("public_id",)
    search_help_text = (
        "A task id or how it begins, the id of a context, #number, or words of the first message."
    )
    actions = ("cancel_selected", "run_again_selected")
    change_list_template = "admin/a2a_tasks/task/list.html"
    change_form_template = "admin/a2a_tasks/task/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        """Return the tasks without their bodies; the page reads these in slices."""
        rows = super().get_queryset(request).select_related("context")
        return rows.defer(*LONG_COLUMNS)

    def get_fieldsets(self, request: HttpRequest, obj: Task | None = None) -> Any:
        """Return no fields: the header shows them, and is updated."""
        return []

    @method_decorator(csp_update({"media-src": [SELF]}))
    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the page of a task, which may hold audio. The public id in the URL redirects to the page."""
        if object_id.isascii() and object_id.isdigit():
            return super().change_view(request, object_id, *args, **kwargs)
        if not self.has_view_permission(request):
            raise PermissionDenied
        name = unquote(object_id)
        # Two owners may have chosen the same id.
        found = list(
            self.get_queryset(request).filter(public_id=name).values_list("pk", flat=True)[:2]
        )
        if not found:
            raise Http404
        if len(found) > 1:
            query = urlencode({"q": name})
            return HttpResponseRedirect(f"{page_url('a2a_tasks_task_changelist')}?{query}")
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", *found))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        """Find by id or by the first message (`Selection.search`)."""
        wanted = search_term.strip()
        found = Selection(search=wanted).of(queryset) if wanted else queryset
        return found, False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list with links to exports, and with the selection of tasks on all pages."""
        ours = {"export_forms": [("csv", "CSV"), ("jsonl", "JSON")], "at_once": f"{bulk.AT_ONCE:,}"}
        return super().changelist_view(request, {**(extra_context or {}), **ours})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TaskChangeList]:
        """Return the list that pages by key."""
        return TaskChangeList

    # -- columns and fields

    def action_checkbox(self, obj: Task) -> SafeString:
        """Show Django's checkbox without a widget and a template for each row: they took a sixth of the page's time."""
        return format_html(_CHECKBOX, ACTION_CHECKBOX_NAME, obj.pk, obj)

    @admin.display(description="task id")
    def short_id(self, task: Task) -> str:
        """Show the id, cut: a client may have chosen it, with up to 256 characters."""
        cut = Truncator(task.public_id).chars(40)
        return format_html('<span title="{}">{}</span>', task.public_id, cut)

    @admin.display(description="began with")
    def opening_cut(self, task: Task) -> str:
        """Show the first message on one line."""
        opening = getattr(task, "opening", "")
        return format_html('<span class="a2a-opening" title="{}">{}</span>', opening, opening)

    state_badge = column("state", lambda row: badge(TaskState(row.state).word))

    @admin.display(description="context")
    def context_link(self, task: Task) -> str:
        """Link to the conversation."""
        url = page_url("a2a_tasks_context_change", task.context_id)
        name = task.context.public_id
        return format_html('<a class="a2a-id" href="{}" title="{}">{}</a>', url, name, name)

    @admin.display(description="agent, owner, tenant")
    def agent_and_owner(self, task: Task) -> str:
        """Show the agent, below it the caller who made the task, and below that the tenant."""
        owner = task.maker or task.owner
        cut = '<span class="a2a-cut" title="{}">{}</span>'
        agent = format_html(cut, task.agent, task.agent)
        if owner:
            who = principals.link_to(owner, getattr(task, "caller_name", ""), "a2a-cut a2a-quiet")
            agent = format_html("{}<br>{}", agent, who)
        if task.tenant:
            below = format_html(
                cut.replace("a2a-cut", "a2a-cut a2a-quiet"), task.tenant, task.tenant
            )
            agent = format_html("{}<br>{}", agent, below)
        return agent

    @admin.display(description="created, lasted")
    def created_and_lasted(self, task: Task) -> str:
        """Show the moment of creation, and below it how long the task took, or has taken so far."""
        end = task.status_at if task.state in TERMINAL else timezone.now()
        words = duration(end - task.created_at)
        lasted = words if task.state in TERMINAL else f"{words} so far"
        below = format_html('<span class="a2a-quiet">{}</span>', lasted)
        return format_html("{}<br>{}", moment(task.created_at), below)

    # -- the page

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show the task in slices, below an empty form."""
        task: Task = context["original"]
        reading = _make_reading(request, task)
        window = timeline.Window.at(request.GET.get("from", ""), task.last_event)
        story = timeline_page.read_story(request, task, window, reading)
        context.update(
            **self._top(request, task),
            window=window,
            begins=event_log.find_first_number(task.pk) or 1,
            story=story,
            tail=story.tail,
            since=window.first,
            reading=reading,
            markdown_query="&markdown" if reading.all_markdown else "",
            artifacts=timeline.artifacts(task.pk, reading),
            files=timeline.files(task.pk),
            notes=timeline.notes(task.pk),
            webhooks=webhooks(request, task.pk),
            related=_list_related(task),
            rows_shown=timeline.ROWS,
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def _top(self, request: HttpRequest, task: Task) -> dict[str, Any]:
        """Return the context of the header and its buttons."""
        is_open = task.state not in TERMINAL
        may_cancel = is_open and self.has_cancel_permission(request)
        may_run = not is_open and self.has_run_again_permission(request)
        # A second click sends the same nonce, so it starts no second task.
        again = uuid.uuid4().hex if may_run else ""
        may_answer = task.state in INTERRUPTED and request.user.has_perm("a2a_tasks.answer_task")
        buttons = {"may_cancel": may_cancel, "may_answer": may_answer, "again": again}
        return {"header": header(request, task), **buttons}

    # -- updates of the page

    def header_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the header if it has changed, else 204."""
        task = self._find_followed(request, object_id)
        if task is None:
            return _redirect_gone(request)
        top = self._top(request, task)
        if top["header"].mark == request.GET.get("mark"):
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        return render(request, "admin/a2a_tasks/task/header.html", {**top, "original": task})

    def tail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the lines after an event if they have changed, else 204. A page that has grown long is reloaded."""
        task = self._find_followed(request, object_id)
        if task is None:
            return _redirect_gone(request)
        after = min(_number(request, "after"), task.last_event)
        since = _number(request, "since")
        if task.last_event - since > timeline_page.LIVE:
            return HttpResponse(headers={"HX-Refresh": "true"})
        reading = _make_reading(request, task)
        story, left_out = timeline_page.tail(request, task, after, reading)
        if story.tail and not story.lines and story.tail.mark == request.GET.get("mark"):
            return HttpResponse(status=HTTPStatus.NO_CONTENT)
        lines = [*story.lines, *(story.tail.lines if story.tail else ())]
        has_new = any(getattr(line.content, "kind", "") == "artifact" for line in lines)
        shown = {
            "original": task,
            "story": story,
            "tail": story.tail,
            "reading": reading,
            "window": timeline.Window(first=since, last=task.last_event, end=task.last_event),
            "artifacts": timeline.artifacts(task.pk, reading)
            if has_new or not story.tail
            else None,
            "rows_shown": timeline.ROWS,
        }
        left = {"left_out": left_out, "left_from": after + 1, "since": since}
        return render(request, "admin/a2a_tasks/task/tail_answer.html", {**shown, **left})

    def _find_followed(self, request: HttpRequest, object_id: str) -> Task | None:
        """Return the task; None if it is gone or the user may not view it, so that the browser stops polling."""
        if not self.admin_site.has_permission(request) or not self.has_view_permission(request):
            return None
        try:
            return self.get_object(request, object_id)
        except Http404:
            return None

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
        self, request: HttpRequest, queryset: QuerySet[Task], deed: bulk.Deed
    ) -> HttpResponse | None:
        plan = bulk.plan(deed, queryset.select_related(None).only("pk", "state", "agent"))
        if not plan.keys:
            note = f"{plan.others} of the selected tasks {deed.impossible}."
            self.message_user(request, note, messages.WARNING)
            return None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": deed.title,
            "deed": deed,
            "plan": plan,
            "keys": ",".join(map(str, plan.keys)),
            "at_once": bulk.AT_ONCE,
            "query": request.GET.urlencode(),
        }
        return TemplateResponse(request, "admin/a2a_tasks/task/bulk.html", context)

    @method_decorator(require_POST)
    def bulk_view(self, request: HttpRequest, deed: str) -> HttpResponse:
        """Apply the confirmed action to those of the named tasks that the user sees."""
        if deed not in bulk.DEEDS:
            raise Http404
        allowed = self.has_cancel_permission if deed == "cancel" else self.has_run_again_permission
        if not (self.has_view_permission(request) and allowed(request)):
            raise PermissionDenied
        numbers = request.POST.get("keys", "").split(",")[: bulk.AT_ONCE]
        keys = [int(number[:18]) for number in numbers if number.isascii() and number.isdigit()]
        tasks = list(self.get_queryset(request).filter(pk__in=keys).order_by("-pk"))
        if deed == "cancel":
            self._tell(request, self._cancel(request, tasks), 0)
        else:
            self._tell_again(request, self._rerun(request, tasks))
        query = QueryDict(request.POST.get("query", "")).urlencode()
        return HttpResponseRedirect(f"{page_url('a2a_tasks_task_changelist')}?{query}")

    def _rerun(self, request: HttpRequest, tasks: list[Task]) -> bulk.Rerun:
        def record(task: Task, again: Again) -> None:
            self.log_change(request, task, f"Run again as {again.id}.")

        nonce = request.POST.get("nonce", "")[:MAX_NONCE_LENGTH] or uuid.uuid4().hex
        return bulk.rerun(tasks, nonce, record)

    def _tell_again(self, request: HttpRequest, result: bulk.Rerun) -> None:
        fresh = [again.id for _, again in result.again if not again.before]
        if fresh:
            names = ", ".join(fresh[:NAMED]) + (" …" if len(fresh) > NAMED else "")
            self.message_user(request, f"Run again: {len(fresh)}, as {names}.", messages.SUCCESS)
        if result.before:
            note = f"Run again before, by the same click: {result.before}."
            self.message_user(request, note, messages.WARNING)
        for reason, count in result.reasons.most_common(bulk.REASONS):
            self.message_user(request, f"Not run again: {count}. {reason}.", messages.WARNING)
        if result.gone:
            self.message_user(request, f"No longer there: {result.gone}.", messages.WARNING)
        if result.untried:
            note = f"The host is too busy, or the database away. Not tried: {result.untried}."
            self.message_user(request, note, messages.ERROR)

    @method_decorator(require_POST)
    def run_again_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then run the task again and show the new one."""
        if not self.has_run_again_permission(request):
            raise PermissionDenied
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
        result = self._rerun(request, [task])
        self._tell_again(request, result)
        shown = result.again[0][1].task if result.again else task.pk
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", shown))

    # -- export, cancelling one task

    @method_decorator(require_POST)
    def export_view(self, request: HttpRequest, form: str) -> HttpResponseBase:
        """Stream the tasks of the list, on all its pages."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        wanted = cast("TaskChangeList", self.get_changelist_instance(request))
        query = request.GET.urlencode()
        audit.note(Action.TASK_EXPORT, detail={"as": form, "of": query})
        return stream_export(form, wanted.queryset.order_by("-pk"), wanted.selection)

    @method_decorator(require_POST)
    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation, then cancel the task."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        task = self.get_object(request, object_id)
        if not is_confirmed(request):
            question = Question(
                title="Cancel the task?",
                text=f"Task {task.public_id} of {task.agent} becomes canceled at once, for its client, too; then its agent is "
                "stopped.",
                warnings=["This cannot be undone. The task may be run again, as a new task."],
                verb="Cancel task",
                back=page_url("a2a_tasks_task_change", task.pk),
            )
            return ask(self, request, question)
        self._tell(request, self._cancel(request, [task]), 0)
        return HttpResponseRedirect(page_url("a2a_tasks_task_change", task.pk))

    def _cancel(self, request: HttpRequest, tasks: list[Task]) -> Outcome:
        def record(task: Task) -> None:
            self.log_change(request, task, "Cancelled.")

        return cancel(tasks, by=request.user.get_username(), record=record)

    def _tell(self, request: HttpRequest, outcome: Outcome, ended: int) -> None:
        if outcome.cancelled:
            self.message_user(
                request,
                f"Cancelled {outcome.cancelled} task{pluralize(outcome.cancelled)}.",
                messages.SUCCESS,
            )
        if ended or outcome.ended:
            counted = ended if isinstance(ended, AtLeast) else ended + outcome.ended
            self.message_user(request, f"Already ended: {counted}.", messages.WARNING)
        if outcome.gone:
            self.message_user(request, f"No longer there: {outcome.gone}.", messages.WARNING)
        if outcome.untried:
            note = f"The database could not be reached. Not cancelled: {outcome.untried}."
            self.message_user(request, note, messages.ERROR)

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
        """Show the JSON of the task in a dialect, or send it as a download."""
        task = self._get_visible(request, object_id)
        dialect = raw_json.dialect_of(request.GET.get("dialect", ""), task)
        if "save" in request.GET:
            return _download_answer(task, dialect)
        shown = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "JSON of the task",
            "subtitle": task.public_id,
            "original": task,
            "raw": raw_json.raw(task, dialect),
        }
        return TemplateResponse(request, "admin/a2a_tasks/task/json.html", shown)

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
            "bulk": ("bulk/<slug:deed>/", view(self.bulk_view)),
            "export": ("export.<slug:form>", view(self.export_view)),
            "cancel": ("<int:object_id>/cancel/", view(self.cancel_view)),
            "again": ("<int:object_id>/run-again/", view(self.run_again_view)),
            "file": ("<int:object_id>/files/<uuid:file_id>/", view(self.file_view)),
            "part": (
                "<int:object_id>/parts/<str:place>/<int:number>/<int:index>/",
                view(self.part_view),
            ),
            "json": ("<int:object_id>/json/", view(self.json_view)),
            # No redirect to the login, which would end up inside the page: a user who is signed out sees a notice.
            "header": ("<int:object_id>/header/", never_cache(self.header_view)),
            "tail": ("<int:object_id>/tail/", never_cache(self.tail_view)),
        }
        return [
            *(
                path(where, shown, name=f"a2a_tasks_task_{name}")
                for name, (where, shown) in ours.items()
            ),
            *super().get_urls(),
        ]


def _make_reading(request: HttpRequest, task: Task) -> Reading:
    base = page_url("a2a_tasks_task_change", task.pk).removesuffix("change/")
    return Reading(base=base, all_markdown="markdown" in request.GET)


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    # The database would refuse a number that is longer than any event's.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004


def _redirect_gone(request: HttpRequest) -> HttpResponse:
    return render(request, "admin/a2a_tasks/task/gone.html", status=HTTPStatus.NOT_FOUND)


def _download_answer(task: Task, dialect: Dialect) -> HttpResponse:
    if raw_json.count_characters(task) > raw_json.LARGEST:
        raise Http404
    name = content_disposition_header(True, f"task-{task.pk}.{dialect.code}.json")
    answer = HttpResponse(raw_json.write_answer(task, dialect), content_type="application/json")
    answer.headers["Content-Disposition"] = name or "attachment"
    return answer


def _list_related(task: Task) -> dict[str, list[str]]:
    """Return the public ids of related tasks: the references of its first message, and its repetitions."""
    first = Message.objects.filter(task=task, number=1).values_list("body", flat=True).first()
    again = AuditEntry.objects.filter(
        action=Action.TASK_RUN_AGAIN, object=task.public_id, tenant=task.tenant
    )
    found = {
        "Refers to": _references(first or ""),
        "Run again as": [
            json.loads(entry.detail)["new"] for entry in again.order_by("pk")[:RELATED]
        ],
    }
    return {words: ids for words, ids in found.items() if ids}


def _references(body: str) -> list[str]:
    """Return the public ids that a stored message refers to; none if its body cannot be parsed."""
    try:
        found = json.loads(body)["referenceTaskIds"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return []
    return [id_ for id_ in found if isinstance(id_, str)] if isinstance(found, list) else []
