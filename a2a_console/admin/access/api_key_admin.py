"""The admin of API keys: create, rotate, revoke. A key is shown once, in the response that creates it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from a2a_console.admin.widgets.columns import ago, column
from a2a_console.admin.widgets.confirming import Question, ask, is_confirmed
from a2a_console.admin.widgets.staff import ModelForm, TenantAdmin, refuse
from a2a_console.site import site
from a2a_console.staff import may_give, sees, tenants_of
from a2a_console.times import duration, moment
from a2a_tasks.access.api_keys import LIFE, IssuedKey, describe, issue, powers, revoke, rotate
from a2a_tasks.access.passwords import scopes_of
from a2a_tasks.agents.security import is_scope
from a2a_tasks.caller import is_tenant
from a2a_tasks.models import ApiKey
from a2a_tasks.rates import read_rate

__all__ = ["ApiKeyAdmin"]

#: The time for which the previous secret still works after a rotation here; the command has an option for it.
OVERLAP = timedelta(hours=24)
#: The largest number of keys that a confirmation names.
NAMED = 10


class ApiKeyForm(ModelForm[ApiKey]):
    """The form of a key, new or existing."""

    #: The user who fills in the form.
    user: ClassVar[User]

    class Meta:
        model = ApiKey
        fields = ("name", "tenant", "scopes", "rate", "expires_at")
        help_texts = {
            "scopes": "Separated by spaces.",
            "rate": "Maximum request rate: 20/s, 600/m burst 100. Empty = default (A2A_RATE_PER_CALLER).",
            "expires_at": "Default: in one year. Empty = never.",
            "tenant": "Leave empty for the default tenant. Cannot be changed later.",
        }

    def clean_scopes(self) -> str:
        """Return the scopes, each once."""
        scopes = sorted(set(self.cleaned_data["scopes"].split()))
        if not all(map(is_scope, scopes)):
            raise ValidationError("Scopes are letters, digits and signs of ASCII, without quotes.")
        return " ".join(scopes)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Label both halves of the date-and-time field, which Django leaves without labels."""
        super().__init__(*args, **kwargs)
        halves = getattr(self.fields["expires_at"].widget, "widgets", [])
        for half, name in zip(halves, ("date", "time"), strict=False):
            half.attrs["aria-label"] = f"Expires at, {name}"

    def clean_rate(self) -> str:
        """Return the rate. Refuse one that cannot be parsed."""
        rate: str = self.cleaned_data["rate"]
        try:
            read_rate(rate)
        except ValueError as fault:
            raise ValidationError(str(fault)) from None
        return rate

    def clean_tenant(self) -> str:
        """Return the tenant. Refuse a name with slashes, and a tenant that the user does not see."""
        tenant: str = self.cleaned_data["tenant"]
        if not is_tenant(tenant):
            raise ValidationError("A tenant has no slashes.")
        if not sees(self.user, tenant):
            raise ValidationError("You make keys for the tenants you see, and no others.")
        return tenant

    def clean(self) -> dict[str, Any]:
        """Refuse a key with more rights than the user has."""
        cleaned = super().clean() or {}
        tenant, scopes = (
            cleaned.get("tenant", self.instance.tenant),
            cleaned.get("scopes", "").split(),
        )
        if not may_give(tenants_of(self.user), scopes_of(self.user), tenant, scopes):
            raise ValidationError(
                "Such a key would have scopes, or see tenants, that you have not."
            )
        return cleaned


@admin.register(ApiKey, site=site)
class ApiKeyAdmin(TenantAdmin[ApiKey]):
    """The list and the page of keys. Neither shows any part of a secret."""

    form = ApiKeyForm
    list_display = ("prefix", "name", "tenant", "scopes", "state", "expires", "last_used")
    search_fields = ("prefix", "name")
    ordering = ("-pk",)
    actions = ("rotate_selected", "revoke_selected")
    shown = (
        *("prefix", "state", "created_at", "rotated_at", "previous_until", "previous_used_at"),
        *("revoked_at", "last_used_at"),
    )

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return the form with the user who fills it in."""
        form: Any = super().get_form(request, *args, **kwargs)
        form.user = request.user
        return form

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Let a new key expire in a year, as the API and the command do."""
        ends = (timezone.now() + LIFE).replace(second=0, microsecond=0)
        return {"expires_at": ends, **super().get_changeform_initial_data(request)}

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """Leave out the history of a new key: there is none."""
        return (*ApiKeyForm.Meta.fields, *(self.shown if obj else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """Make the tenant of an existing key read-only: the key's tasks would be left behind."""
        return (*self.shown, "tenant") if obj else ()

    #: Tasks name the key as their owner. Keys are revoked instead.
    has_delete_permission = refuse

    expires = column("expires", lambda row: moment(row.expires_at) or "never")
    last_used = column("last used", lambda row: ago(row.last_used_at))

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        """Create a key, or save the changes."""
        if change:
            describe(obj)
            return
        issued = issue(
            obj.name,
            tenant=obj.tenant,
            scopes=obj.scopes.split(),
            expires_at=obj.expires_at,
            rate=obj.rate,
        )
        obj.pk, obj.prefix = issued.row.pk, issued.row.prefix
        request.issued = [issued]  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the key in this response: a message for the next page would be kept in a cookie."""
        return self._show_once(request, request.issued)  # type: ignore[attr-defined]

    @admin.action(description="Rotate selected keys …", permissions=["change"])
    def rotate_selected(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse:
        """Ask for confirmation, then give the keys new secrets, and show these."""
        if not is_confirmed(request):
            return ask(self, request, _rotate_question(queryset, request.get_full_path()))
        issued, tenants, own_scopes = [], tenants_of(request.user), scopes_of(request.user)
        for row in queryset:
            if not may_give(tenants, own_scopes, row.tenant, powers(row)):
                warning = f"{row} has scopes or rights, or sees tenants, that you have not."
                self.message_user(request, warning, messages.WARNING)
                continue
            try:
                issued.append(rotate(row.prefix, OVERLAP))
            except ValueError:
                self.message_user(request, f"{row} has ended.", messages.WARNING)
            else:
                self.log_change(request, row, "Rotated.")
        return self._show_once(request, issued)

    @admin.action(description="Revoke selected keys", permissions=["change"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        """Ask for confirmation, then revoke the keys for good."""
        if not is_confirmed(request):
            return ask(self, request, _revoke_question(queryset, request.get_full_path()))
        ended = [row for row in queryset if revoke(row.prefix)]
        for row in ended:
            self.log_change(request, row, "Revoked.")
        self.message_user(request, f"Revoked: {len(ended)}.", messages.SUCCESS)
        return None

    def _show_once(self, request: HttpRequest, issued: Iterable[IssuedKey]) -> HttpResponse:
        """Show the keys. The CSRF token is rotated: a reload, which posts the form again, makes no second key."""
        rotate_token(request)
        title = "API keys, shown once"
        response = self.show(request, "a2a_tasks/apikey/issued", title, issued=issued)
        add_never_cache_headers(response)
        return response


def _name(rows: QuerySet[ApiKey]) -> str:
    names = [str(row) for row in rows[: NAMED + 1]]
    return ", ".join(names[:NAMED]) + (" and others" if len(names) > NAMED else "")


def _rotate_question(rows: QuerySet[ApiKey], back: str) -> Question:
    return Question(
        title="Rotate the keys?",
        text=f"{_name(rows)}: each gets a new secret, which is shown once. The old secrets are accepted for another "
        f"{duration(OVERLAP)}: give the new ones to the clients until then.",
        verb="Rotate",
        back=back,
    )


def _revoke_question(rows: QuerySet[ApiKey], back: str) -> Question:
    return Question(
        title="Revoke the keys?",
        text=f"{_name(rows)}: they are refused within A2A_CREDENTIAL_SECONDS, for good. Their "
        "tasks stay. To change a secret, rotate instead.",
        verb="Revoke",
        back=back,
        is_dangerous=True,
    )
