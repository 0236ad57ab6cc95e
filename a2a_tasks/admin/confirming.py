"""Asking before doing. A button posts; the answer is a page that says what will happen, and posts the same once more."""

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
    """What the page says."""

    title: str
    #: What will happen.
    text: str
    #: What speaks against it.
    warnings: Sequence[str] = ()
    #: On the button.
    verb: str
    #: Where "No" leads.
    back: str


def is_confirmed(request: HttpRequest) -> bool:
    """Has the question been answered by yes?"""
    return CONFIRMED in request.POST


def ask(admin: ModelAdmin[Any], request: HttpRequest, question: Question) -> TemplateResponse:
    """The page; its form has everything that was posted, and yes."""
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
