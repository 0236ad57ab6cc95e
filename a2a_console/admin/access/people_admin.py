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

__all__ = ["GroupsOfSuperusers", "OfSuperusers", "UsersOfSuperusers"]


class OfSuperusers:
    """Pages for superusers only, whatever permissions other users have."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    user = request.user
    return user.is_active and user.is_superuser


admin.site.unregister([User, Group])


@admin.register(User)
class UsersOfSuperusers(OfSuperusers, _UserAdmin):
    """Django's pages of users."""


@admin.register(Group)
class GroupsOfSuperusers(OfSuperusers, GroupAdmin):
    """Django's pages of groups; `tenant:acme` lets members see that tenant (`staff.py`)."""
