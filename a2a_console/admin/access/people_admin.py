"""Users and groups, for superusers only: any user who may change them could gain every right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

if TYPE_CHECKING:
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin

from a2a_console.admin.widgets.deletion import CountedDeletion
from a2a_console.site import site

__all__ = ["GroupsOfSuperusers", "OfSuperusers", "UsersOfSuperusers"]


class OfSuperusers(CountedDeletion):
    """Pages for superusers only, whatever permissions other users have."""

    change_list_template: Any = "admin/a2a_tasks/change_list.html"

    def has_module_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.is_active and request.user.is_superuser

    has_view_permission = has_add_permission = has_module_permission
    has_change_permission = has_delete_permission = has_module_permission


site.unregister([User, Group])


@admin.register(User, site=site)
class UsersOfSuperusers(OfSuperusers, _UserAdmin):
    """Django's pages of users."""


@admin.register(Group, site=site)
class GroupsOfSuperusers(OfSuperusers, GroupAdmin):
    """Django's pages of groups; `tenant:acme` lets members see that tenant (`staff.py`)."""
