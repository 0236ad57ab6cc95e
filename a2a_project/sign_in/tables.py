"""allauth's tables in the admin, for superusers only: write access would allow a sign-in as any user."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.http import HttpRequest

from a2a_console.admin.access.people_admin import OfSuperusers

__all__ = ["register"]


class SignInRowAdmin(OfSuperusers, admin.ModelAdmin):  # type: ignore[type-arg]  # of several tables
    """Rows can be viewed and deleted, such as a lost factor or an account of the issuer."""

    list_display = ("user", "shown")
    list_select_related = ("user",)
    fields = readonly_fields = list_display

    @admin.display(description="factor or account")
    def shown(self, row: Authenticator | SocialAccount) -> str:
        """Return the kind of factor, or the user's id at the issuer; no secret."""
        return str(row.get_type_display() if isinstance(row, Authenticator) else row.uid)

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse: rows are made by signing in."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Refuse."""
        return False


def register() -> None:
    """Replace allauth's own pages."""
    admin.site.unregister([EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken])
    admin.site.register([Authenticator, SocialAccount], SignInRowAdmin)
