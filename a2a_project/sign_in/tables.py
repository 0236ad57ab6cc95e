"""allauth's tables in the admin: who may write in them can let himself in as anybody, so they are for superusers alone."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django.contrib import admin
from django.http import HttpRequest

from a2a_tasks.admin.people_admin import OfSuperusers

__all__ = ["register"]


class Kept(OfSuperusers, admin.ModelAdmin):  # type: ignore[type-arg]  # of several tables
    """A row is looked at, and taken away: a factor that was lost, an account of the issuer's."""

    list_display = ("user", "shown")
    list_select_related = ("user",)
    fields = readonly_fields = list_display

    @admin.display(description="what")
    def shown(self, row: Authenticator | SocialAccount) -> str:
        """The kind of factor, or who it is at the issuer's; no secret."""
        return str(row.get_type_display() if isinstance(row, Authenticator) else row.uid)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They come by signing in."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """The same."""
        return False


def register() -> None:
    """In place of allauth's own pages."""
    admin.site.unregister([EmailAddress, Authenticator, SocialAccount, SocialApp, SocialToken])
    admin.site.register([Authenticator, SocialAccount], Kept)
