"""The names of principals (API keys, staff and users), with links to their tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from a2a_console.admin.widgets.formatting import escape_name
from a2a_console.admin.widgets.paging import NewestFirst
from a2a_console.site import page_url
from a2a_tasks.models import ApiKey

__all__ = ["NamingList", "link_of", "link_to", "names", "find_principal"]

#: The longest number that can be the primary key of a user.
MAX_DIGITS = 9
KEY, PEOPLE = "key", ("staff", "user")


def names(principals: Iterable[str]) -> Mapping[str, str]:
    """Return the names of the principals that have one, with one query of keys and one of users."""
    parts = {principal: principal.partition(":") for principal in principals}
    prefixes = [rest for kind, _, rest in parts.values() if kind == KEY]
    numbers = [rest for kind, _, rest in parts.values() if kind in PEOPLE]
    keys = (
        dict(ApiKey.objects.filter(prefix__in=prefixes).values_list("prefix", "name"))
        if prefixes
        else {}
    )
    users = _read_users(numbers) if numbers else {}
    found = {}
    for principal, (kind, _, rest) in parts.items():
        if kind == KEY:
            found[principal] = keys.get(rest, "")
        elif kind in PEOPLE and (user := users.get(rest)):
            found[principal] = user.get_username()
    return found


class NamingList(NewestFirst):
    """A changelist that adds the name of the principal to each row (`principal_of` of the admin)."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and the names of all its principals together."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        principal_of: Callable[[Any], str] = getattr(self.model_admin, "principal_of")  # noqa: B009 - Django's type has none
        known = names({principal_of(row) for row in self.result_list})
        for row in self.result_list:
            row.principal_name = known.get(principal_of(row), "")


def link_of(row: Any, principal: str, classes: str = "a2a-cut") -> SafeString | str:
    """Return a link from the principal of a row to its tasks. The name is read unless the list has read it already."""
    if ":" not in principal:  # the host itself, or an anonymous caller
        return principal
    name = getattr(row, "principal_name", None)
    return link_to(
        principal, names([principal]).get(principal, "") if name is None else name, classes
    )


def find_principal(text: str) -> str:
    """Return the principal of the newest key with this name; the text itself if there is none."""
    if ":" in text:
        return text
    key = ApiKey.objects.filter(name=text).order_by("-pk").only("prefix").first()
    return f"{KEY}:{key.prefix}" if key else text


def link_to(principal: str, name: str = "", classes: str = "") -> SafeString:
    """Return a link from the principal to its tasks."""
    url = f"{page_url('a2a_tasks_task_changelist')}?{urlencode({'owner': principal})}"
    shown = escape_name(name or principal)
    return format_html('<a class="{}" href="{}" title="{}">{}</a>', classes, url, principal, shown)


def _read_users(keys: Iterable[str]) -> Mapping[str, Any]:
    """Return the users by their primary keys in text, which may be of any type; others are left out."""
    model: Any = get_user_model()
    valid = []
    for key in keys:
        with suppress(ValidationError):
            if key.isascii() and not (key.isdigit() and len(key) > MAX_DIGITS):
                valid.append(model._meta.pk.to_python(key))  # noqa: SLF001 - Django's documented interface
    return {str(user.pk): user for user in model.objects.in_bulk(valid).values()}
