"""System checks of the console: missing apps and templates of the project that it is part of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, register
from django.template import TemplateDoesNotExist
from django.template.loader import get_template

__all__ = ["check_project"]

#: Apps of Django that the pages are made with.
APPS = ("admin", "auth", "contenttypes", "messages", "sessions", "staticfiles")


@register()
def check_project(**_: Any) -> Iterable[CheckMessage]:
    """Report missing apps, and templates that cannot be found."""
    for name in APPS:
        if not apps.is_installed(f"django.contrib.{name}"):
            hint = f"Add django.contrib.{name} to INSTALLED_APPS."
            yield Error(
                f"the console needs django.contrib.{name}", hint=hint, id="a2a_console.E001"
            )
    try:
        get_template("a2a_console/handover.html")
    except TemplateDoesNotExist:
        yield Error(
            "Django does not find the templates of the host's apps",
            hint="TEMPLATES needs DjangoTemplates with APP_DIRS, or the loader app_directories.",
            id="a2a_console.E002",
        )
