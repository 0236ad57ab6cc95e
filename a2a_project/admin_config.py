"""The admin as the host has it: in place of `django.contrib.admin` among the installed apps."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig

__all__ = ["HostAdminConfig"]


class HostAdminConfig(AdminConfig):
    """Django's own app with a site of ours."""

    default_site = "a2a_project.admin_site.HostAdminSite"
