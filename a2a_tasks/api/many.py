"""Many tasks at once: cancelled or run again, with what would happen said before, and exported as they are read.

What is done, to how many, and what is told of it is the admin's (`admin/bulk.py`); which tasks are meant is the list's.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.core import signing
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from a2a_tasks.admin import bulk, cancelling
from a2a_tasks.admin.bulk import AT_ONCE, Deed, Plan
from a2a_tasks.admin.export import streamed
from a2a_tasks.api.action import Asked, Text, View, action
from a2a_tasks.api.door import operator_of
from a2a_tasks.api.problems import wrong
from a2a_tasks.api.tasks import (
    FILTERS,
    STATES,
    TO_CANCEL,
    TO_RUN_AGAIN,
    TO_VIEW,
    RunAgainBody,
    TaskFilters,
    meant,
    task_rows,
)
from a2a_tasks.audit import Action
from a2a_tasks.models import Task
from a2a_tasks.store import audit

__all__ = ["TasksAgain", "TasksCancel", "TasksExport"]

#: The largest number a row can have.
LAST_KEY = 2**63 - 1
LINES = Text(
    ("application/jsonl", "text/csv"),
    "All that are meant, newest first, a line each, sent as they are read: JSON objects, or CSV (RFC 4180) with a heading.",
)


class TaskChoice(TaskFilters):
    """Which tasks: by their numbers, by filters of the list, or by both."""

    keys = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LAST_KEY),
        required=False,
        allow_empty=False,
        max_length=AT_ONCE,
        help_text="Numbers of tasks.",
    )
    all = serializers.BooleanField(
        required=False, default=False, help_text="Needed if nothing else narrows."
    )
    dry_run = serializers.BooleanField(
        required=False, default=False, help_text="Say what would be done, and do nothing."
    )
    cursor = serializers.CharField(
        required=False, max_length=200, help_text="`next` of the answer before."
    )


class TaskAgainChoice(TaskChoice, RunAgainBody):
    """The same, and whose wish it is."""


class TaskExportChoice(TaskFilters):
    """Which tasks, all of them if nothing narrows, and as what."""

    format = serializers.ChoiceField(["jsonl", "csv"], default="jsonl")


class PartSerializer(serializers.Serializer[Any]):
    """How many tasks of one state and agent."""

    state = serializers.ChoiceField(list(STATES))
    agent = serializers.CharField()
    count = serializers.IntegerField()


class PlanSerializer(serializers.Serializer[Any]):
    """What was meant."""

    found = serializers.IntegerField(
        help_text=f"Tasks that this request is about, the newest {AT_ONCE:,} at most."
    )
    parts = PartSerializer(many=True, help_text="Of these, how many in each state with each agent.")
    keys = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Their numbers, newest first. Said as `keys`, they mean these and no others.",
    )
    others = serializers.IntegerField(
        help_text="Of the `keys` that were said, how many are in no state for it."
    )
    missing = serializers.IntegerField(
        help_text="Of the `keys` that were said, how many are not there, or not meant by the filters."
    )
    next = serializers.CharField(
        allow_null=True, help_text="There are more: the same request with this as its `cursor`."
    )


class CancelledSerializer(PlanSerializer):
    """What was meant, and what became of it; of a dry run, nothing."""

    cancelled = serializers.IntegerField()
    ended = serializers.IntegerField(help_text="They ended meanwhile.")
    gone = serializers.IntegerField(help_text="They are no longer there.")
    untried = serializers.IntegerField(help_text="The database was away: ask again.")


class NewTaskSerializer(serializers.Serializer[Any]):
    """A task and the one it began anew as."""

    key = serializers.IntegerField(help_text="Of the old one.")
    new_key = serializers.IntegerField()
    new_id = serializers.CharField()
    before = serializers.BooleanField(help_text="By the same `nonce`, before this request.")


class RefusalSerializer(serializers.Serializer[Any]):
    """Why some were not run again."""

    reason = serializers.CharField()
    count = serializers.IntegerField()


class RunAgainSerializer(PlanSerializer):
    """What was meant, and what became of it; of a dry run, nothing."""

    again = NewTaskSerializer(many=True)
    refused = RefusalSerializer(many=True)
    gone = serializers.IntegerField(help_text="They are no longer there.")
    untried = serializers.IntegerField(
        help_text="The host was too busy, or the database away: ask again, with the same `nonce`."
    )


class TasksCancel(View):
    """Cancelling many."""

    @action("cancel_tasks", TO_CANCEL, CancelledSerializer, body=TaskChoice)
    def post(self, request: Request, asked: Asked) -> Response:
        """Cancel those tasks that have not ended, newest first, at most a thousand a request.

        Each is final at once, then its agent is stopped. With `dry_run` it says how many that would be, by state and
        agent. Go on with `next` until it is null.
        """
        plan, told = _planned(request, asked, bulk.CANCEL)
        outcome = cancelling.cancel(
            _named(request, asked, plan), by=operator_of(request).principal, record=_nothing
        )
        told |= {"cancelled": outcome.cancelled, "ended": outcome.ended}
        told |= {"gone": outcome.gone, "untried": outcome.untried}
        return Response(CancelledSerializer(told).data)


class TasksAgain(View):
    """Running many again."""

    @action("run_tasks_again", TO_RUN_AGAIN, RunAgainSerializer, body=TaskAgainChoice)
    def post(self, request: Request, asked: Asked) -> Response:
        """Run those tasks again that have ended, newest first, at most a thousand a request.

        Each begins once more as a new task, as `run-again` of one has it; agents may do twice what they did. With `dry_run`
        it says how many that would be, by state and agent. Go on with `next` until it is null; the same `nonce` runs none
        of them twice.
        """
        plan, told = _planned(request, asked, bulk.AGAIN)
        nonce = asked.get("nonce") or uuid.uuid4().hex
        outcome = bulk.rerun(_named(request, asked, plan), nonce, _nothing)
        again = [
            {"key": old.pk, "new_key": new.task, "new_id": new.id, "before": new.before}
            for old, new in outcome.again
        ]
        refused = [
            {"reason": reason, "count": count} for reason, count in outcome.reasons.most_common()
        ]
        told |= {"again": again, "refused": refused}
        told |= {"gone": outcome.gone, "untried": outcome.untried}
        return Response(RunAgainSerializer(told).data)


class TasksExport(View):
    """Exporting many."""

    @action("export_tasks", TO_VIEW, LINES, body=TaskExportChoice)
    def post(self, request: Request, asked: Asked) -> StreamingHttpResponse:
        """Send all tasks that are meant as a stream, however many there are; that it was done is in the audit log.

        What they said is not in it beyond how they began.
        """
        wanted = meant(asked)
        said = {"as": asked["format"], "of": str(wanted.said())}
        audit.note(Action.TASK_EXPORT, tenant=operator_of(request).tenant, detail=said)
        return streamed(asked["format"], task_rows(request), wanted)


def _planned(request: Request, asked: Asked, deed: Deed) -> tuple[Plan, dict[str, Any]]:
    """What it would be done to, and what is told of that. Raises Invalid if it is not said which."""
    if not (asked["all"] or (FILTERS | {"keys"}) & asked.keys()):
        raise wrong("body", "all", "Say which, or that all are meant.")
    rows = _rows(request, asked)
    chosen, plan = meant(asked), Plan(keys=[], parts=[], more=False, others=0)
    if "keys" in asked:  # whoever names them is told of those that are in no state for it
        plan = bulk.planned(deed, rows.filter(pk__in=asked["keys"]), chosen)
    elif states := (chosen.states & deed.states if chosen.states else deed.states):
        plan = bulk.planned(deed, rows, chosen.among(states))
    named = len(set(asked.get("keys", [])))
    return plan, {
        "found": len(plan.keys),
        "parts": [
            {"state": state, "agent": agent, "count": count} for state, agent, count in plan.parts
        ],
        "keys": plan.keys,
        "others": plan.others,
        "missing": named - len(plan.keys) - plan.others if named else 0,
        "next": _signer().sign_object(plan.keys[-1]) if plan.more else None,
    }


def _rows(request: Request, asked: Asked) -> QuerySet[Task]:
    rows = task_rows(request).select_related(None).only("pk", "state", "agent")
    before = _opened(asked.get("cursor", ""))
    return rows if before is None else rows.filter(pk__lt=before)


def _named(request: Request, asked: Asked, plan: Plan) -> list[Task]:
    """The tasks that it is done to; of a dry run, none."""
    if asked["dry_run"]:
        return []
    return list(_rows(request, {}).filter(pk__in=plan.keys).order_by("-pk"))


def _nothing(*_: Any) -> None:
    """The audit log has it already: what the admin notes beside that is for its pages."""


def _signer() -> signing.Signer:
    return signing.Signer(salt="a2a.api/many")


def _opened(cursor: str) -> int | None:
    try:
        return int(_signer().unsign_object(cursor)) if cursor else None
    except (signing.BadSignature, ValueError, TypeError):
        raise wrong("body", "cursor", "This is not a cursor of such a request.") from None
