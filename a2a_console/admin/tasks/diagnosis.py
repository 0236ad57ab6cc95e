"""The diagnosis of a task for pages: the variable `diagnosis` of `admin/a2a_tasks/task/diagnosis.html`."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest

from a2a_console.diagnosis.reasons import Reason, RowLink, diagnose
from a2a_console.site import page_url

__all__ = ["DiagnosisLine", "ShownDiagnosis", "read_diagnosis"]


@dataclass(frozen=True, kw_only=True)
class DiagnosisLine:
    """A reason, with a link to the object it is about if the user may view that."""

    reason: Reason
    url: str = ""
    what: str = ""


@dataclass(frozen=True, kw_only=True)
class ShownDiagnosis:
    """The reason for the state of the task, and the reasons of its webhooks."""

    task: DiagnosisLine
    also: list[DiagnosisLine]


def read_diagnosis(request: HttpRequest, task: int) -> ShownDiagnosis:
    """Diagnose the task with this primary key, which the user may view. Raises TaskNotFound."""
    found = diagnose(task)
    return ShownDiagnosis(
        task=_line(request, found), also=[_line(request, one) for one in found.also]
    )


def _line(request: HttpRequest, reason: Reason) -> DiagnosisLine:
    link = reason.link
    if link is None or not _may_view(request, link):
        return DiagnosisLine(reason=reason)
    app, _, name = link.model.partition(".")
    return DiagnosisLine(reason=reason, url=page_url(f"{app}_{name}_change", link.key), what=name)


def _may_view(request: HttpRequest, link: RowLink) -> bool:
    app, _, name = link.model.partition(".")
    return any(request.user.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
