"""The export of tasks as a file. It is streamed some rows at a time, so that no export is too long for the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, StreamingHttpResponse

from a2a_console.search.selection import Selection
from a2a_console.search.task_record import csv_text, export_rows, json_text
from a2a_tasks.audit import Action
from a2a_tasks.models import Task
from a2a_tasks.store import audit
from a2a_tasks.store.db import run_in_thread

__all__ = ["stream_export", "stream_texts"]

MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


def stream_export(
    form: str, rows: QuerySet[Task], selection: Selection, tenant: str = ""
) -> StreamingHttpResponse:
    """Return the tasks of the selection as `csv` or `jsonl`, and audit it. Raises Http404 for another form."""
    if form not in MEDIA_TYPES:
        raise Http404
    detail, owner = {"as": form, "of": str(selection.describe())}, (selection.owner or "")[:256]
    audit.note(Action.TASK_EXPORT, owner, tenant=tenant, detail=detail)
    return stream_texts(f"tasks.{form}", _write(form, export_rows(rows, selection)))


def stream_texts(name: str, texts: Iterator[str]) -> StreamingHttpResponse:
    """Return the texts as a file to be saved. The end of its name says the media type."""
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    answer = StreamingHttpResponse(_send(_Slices(texts)), content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _write(form: str, slices: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    if form == "csv":
        yield csv_text([], heading=True)
    for found in slices:
        yield csv_text(found) if form == "csv" else json_text(found)


async def _send(slices: _Slices) -> AsyncIterator[str]:
    """Yield the file. Each read has its own transaction, so that a slow client holds no thread and no transaction."""
    while (text := await run_in_thread(slices.next)) is not None:
        if text:
            yield text


class _Slices:
    """Texts that raise an exception again and again: a generator would seem to end, and the file whole."""

    def __init__(self, slices: Iterator[str]) -> None:
        self._slices = slices
        self._fault: Exception | None = None

    def next(self) -> str | None:
        """Return the next slice; None at the end."""
        if self._fault is not None:
            raise self._fault
        try:
            return next(self._slices, None)
        except Exception as fault:
            self._fault = fault
            raise
