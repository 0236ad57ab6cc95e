"""The host's admin, installed in place of `django.contrib.admin`."""

from __future__ import annotations

from django.conf import settings
from django.contrib.admin.apps import AdminConfig

__all__ = ["HostAdminConfig"]


class HostAdminConfig(AdminConfig):
    """Django's admin app with the host's own site."""

    default_site = "a2a_console.site.HostAdminSite"

    def ready(self) -> None:
        """Do as Django's app; and register second factors, where they exist, as sealed columns."""
        super().ready()
        if settings.SIGN_IN_EXTRA:
            from allauth.mfa.models import Authenticator  # noqa: PLC0415 - an extra

            from a2a_tasks.store import sealed_columns  # noqa: PLC0415 - needs the models

            sealed_columns.register(sealed_columns.Column("second factors", Authenticator, "data"))
