"""The admin as the host has it: in place of `django.contrib.admin` among the installed apps."""

from __future__ import annotations

from django.conf import settings
from django.contrib.admin.apps import AdminConfig

__all__ = ["HostAdminConfig"]


class HostAdminConfig(AdminConfig):
    """Django's own app with a site of ours."""

    default_site = "a2a_project.admin_site.HostAdminSite"

    def ready(self) -> None:
        """As Django's; second factors, where there are any, are among what is sealed."""
        super().ready()
        if settings.SIGN_IN_EXTRA:
            from allauth.mfa.models import Authenticator  # noqa: PLC0415 - an extra

            from a2a_tasks.store import sealed_columns  # noqa: PLC0415 - needs the models

            sealed_columns.register(sealed_columns.Column("second factors", Authenticator, "data"))
