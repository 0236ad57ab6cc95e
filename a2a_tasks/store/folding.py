"""Artifacts that grew piece by piece: put together when they are read, and once they are whole kept so.

The row of an artifact has an empty body as long as its pieces are in the log alone. It is folded after the transaction
that closed it, never inside: what grows with data keeps no row locked. See docs/decisions/0175.
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

#: Large artifacts of few pieces stay in pieces: to put these together for a reader costs no more than to read the whole.
MOST_BYTES, FEW_PIECES = 4 * 1024 * 1024, 1000


def fold_behind(task: int, through: int, positions: Collection[int] | None = None) -> None:
    """Fold artifacts of a task that were whole at event `through`, in the store's threads: those at these positions, or all."""

    def begin() -> None:
        behind(fold, task, through, positions)

    transaction.on_commit(begin)


def fold(task: int, through: int, positions: Collection[int] | None = None) -> None:
    """Fold artifacts of a task that were whole at event `through`, if they have not grown since."""
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
        if (
            connection.vendor == "postgresql"
        ):  # whoever appends waits for it, or has and is seen by the next statement
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
    """Artifacts that are not folded yet, as JSON by id: assembled from the events since each began.

    `through` is the last event to look at, so that a task read together with its number stays at that number.
    One whose log is being removed has no pieces.
    """
    pieces = _pieces(task, min(first_events.values()), through)
    found = assemble(pieces.values_list("body", flat=True))
    return {key: found.get(key) or _without_pieces(key) for key in first_events}


def _without_pieces(artifact_id: str) -> bytes:
    return write({"artifactId": artifact_id, "parts": []})
