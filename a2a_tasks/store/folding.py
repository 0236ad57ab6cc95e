"""Assembling artifacts that were streamed in pieces.

While the body of an artifact's row is empty, its pieces are in the event log, and each reader assembles them. Folding
writes the assembled artifact into the row. It happens after the transaction that closed the artifact, so that reading and
assembling the pieces locks no row; only the update locks the task's row. See docs/decisions/0175.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import connection, transaction
from django.db.models import Count, QuerySet, Sum

from a2a_tasks.models import Artifact, Event, Task
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.lifecycle import EventKind, assemble
from a2a_tasks.store.deadline import allowing
from a2a_tasks.store.hop import behind
from a2a_tasks.store.sql import LARGE, Bytes

__all__ = ["fold", "fold_behind", "growing"]

#: An artifact of more bytes in at most so many pieces is not folded. Assembling it costs about as much as reading it.
MOST_BYTES, FEW_PIECES = 4 * 1024 * 1024, 1000


def fold_behind(task: int, through: int, positions: Collection[int] | None = None) -> None:
    """Fold artifacts in the store's threads after the current transaction has committed; see `fold`."""

    def begin() -> None:
        behind(fold, task, through, positions)

    transaction.on_commit(begin)


def fold(task: int, through: int, positions: Collection[int] | None = None) -> None:
    """Fold artifacts of a task that were closed by event `through`, unless they got more pieces later.

    `positions` names the artifacts; None means all of the task. Raises django.db's errors.
    """
    artifacts = Artifact.objects.filter(task_id=task, body="")
    if positions is not None:
        artifacts = artifacts.filter(position__in=positions)
    for artifact in artifacts.order_by("position"):
        _fold(artifact, through)


def _fold(artifact: Artifact, through: int) -> None:
    pieces = _pieces(artifact.task_id, artifact.first_event, through)
    count, size = pieces.aggregate(count=Count("*"), size=Sum(Bytes("body"))).values()
    if not count or (size > MOST_BYTES and count <= FEW_PIECES):
        return
    found = assemble(pieces.values_list("body", flat=True))
    if artifact.artifact_id in found:
        _keep(artifact, found[artifact.artifact_id].decode(), through)


def _keep(artifact: Artifact, whole: str, through: int) -> None:
    large = len(whole) > LARGE and connection.vendor == "postgresql"
    with allowing(len(whole)) if large else transaction.atomic():
        tasks = Task.objects.filter(pk=artifact.task_id)
        # An append that holds the lock is waited for, and the next statement sees its pieces.
        if connection.vendor == "postgresql":
            tasks = tasks.select_for_update(of=("self",))
        if not tasks.values_list("pk").first():
            return
        opening = f'{{"artifact":{{"artifactId":{write(artifact.artifact_id).decode()}'
        later = Event.objects.filter(task_id=artifact.task_id, kind=EventKind.ARTIFACT)
        if not later.filter(number__gt=through, body__startswith=opening).exists():
            same = Artifact.objects.filter(pk=artifact.pk, first_event=artifact.first_event)
            same.filter(body="").update(body=whole)


def _pieces(task: int, first: int, through: int | None) -> QuerySet[Event]:
    """The pieces of all artifacts from that event on, oldest first."""
    events = Event.objects.filter(task_id=task, kind=EventKind.ARTIFACT, number__gte=first)
    if through is not None:
        events = events.filter(number__lte=through)
    return events.order_by("number")


def growing(
    task: int, first_events: dict[str, int], *, through: int | None = None
) -> dict[str, bytes]:
    """Assemble artifacts that are not folded yet, from the events since each began. Returns JSON by artifact id.

    `through` is the last event to read, so that a task read together with its event number stays at that number.
    An artifact whose events are already removed by a purge has no parts.
    """
    pieces = _pieces(task, min(first_events.values()), through)
    found = assemble(pieces.values_list("body", flat=True))
    return {key: found.get(key) or _without_pieces(key) for key in first_events}


def _without_pieces(artifact_id: str) -> bytes:
    return write({"artifactId": artifact_id, "parts": []})
