"""Principals as people know them: a key by its name, staff and users by theirs; each leads to its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from a2a_tasks.admin.shown import named
from a2a_tasks.models import ApiKey

__all__ = ["link_to", "names", "principal_called"]

KEY, PEOPLE = "key", ("staff", "user")


def names(principals: Iterable[str]) -> Mapping[str, str]:
    """The names of those that have one, in a look at keys and one at users."""
    parts = {principal: principal.partition(":") for principal in principals}
    prefixes = [rest for kind, _, rest in parts.values() if kind == KEY]
    numbers = [rest for kind, _, rest in parts.values() if kind in PEOPLE and _is_number(rest)]
    keys = (
        dict(ApiKey.objects.filter(prefix__in=prefixes).values_list("prefix", "name"))
        if prefixes
        else {}
    )
    users = User.objects.in_bulk(list(map(int, numbers))) if numbers else {}
    found = {}
    for principal, (kind, _, rest) in parts.items():
        if kind == KEY:
            found[principal] = keys.get(rest, "")
        elif kind in PEOPLE and _is_number(rest) and (user := users.get(int(rest))):
            found[principal] = user.get_username()
    return found


def principal_called(text: str) -> str:
    """The principal of the newest key of this name; the text itself if there is none."""
    if ":" in text:
        return text
    key = ApiKey.objects.filter(name=text).order_by("-pk").only("prefix").first()
    return f"{KEY}:{key.prefix}" if key else text


def link_to(principal: str, name: str = "", classes: str = "") -> SafeString:
    """The caller, which leads to its tasks."""
    url = f"{reverse('admin:a2a_tasks_task_changelist')}?{urlencode({'owner': principal})}"
    shown = named(name or principal)
    return format_html('<a class="{}" href="{}" title="{}">{}</a>', classes, url, principal, shown)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004 - as large as a user's key may be
