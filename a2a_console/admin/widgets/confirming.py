"""Confirmation of actions. A button posts; the response is a page with the consequences, which posts the form again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest
from django.template.response import TemplateResponse

__all__ = ["Question", "ask", "is_confirmed"]

CONFIRMED = "confirmed"


@dataclass(frozen=True, kw_only=True)
class Question:
    """The texts of the page."""

    title: str
    #: The consequences.
    text: str
    #: Warnings to read before the confirmation.
    warnings: Sequence[str] = ()
    #: The label of the button.
    verb: str
    #: The URL of "No".
    back: str
    #: True if the button is red.
    is_dangerous: bool = False


def is_confirmed(request: HttpRequest) -> bool:
    """Return whether the request confirms the action."""
    return CONFIRMED in request.POST


def ask(admin: ModelAdmin[Any], request: HttpRequest, question: Question) -> TemplateResponse:
    """Return the page. Its form has all posted values and the confirmation."""
    kept = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    context = {
        **admin.admin_site.each_context(request),
        "opts": admin.opts,
        "title": question.title,
        "question": question,
        "kept": [*kept, (CONFIRMED, "yes")],
    }
    return TemplateResponse(request, "admin/a2a_tasks/confirm.html", context)
