"""Audit entries about Django's users: their sign-ins and sign-outs, and their changes by page or command."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, Group, PermissionsMixin
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save
from django.http import HttpRequest

from a2a_tasks.access import auth_failures
from a2a_tasks.access.staff import address_of
from a2a_tasks.audit import Action, staff
from a2a_tasks.conf import project
from a2a_tasks.store import audit

__all__ = ["install"]

#: The column that a sign-in changes in a user's row; the sign-in has an entry of its own.
SIGN_IN = frozenset({"last_login"})
CHANGED = {"post_add", "post_remove", "post_clear"}


def install() -> None:
    """Connect the signals. Raises ImproperlyConfigured if the user model has no groups: they are tenants and scopes."""
    user: Any = get_user_model()
    if not issubclass(user, PermissionsMixin):
        raise ImproperlyConfigured(
            f"the host needs users with groups: {user.__name__} must inherit PermissionsMixin"
        )
    user_logged_in.connect(_on_sign_in, dispatch_uid="audit")
    user_logged_out.connect(_on_sign_out, dispatch_uid="audit")
    user_login_failed.connect(_on_failure, dispatch_uid="audit")
    for model in (user, Group):
        post_save.connect(_on_save, sender=model, dispatch_uid="audit")
        post_delete.connect(_on_delete, sender=model, dispatch_uid="audit")
    for through in (user.groups, user.user_permissions, Group.permissions):
        m2m_changed.connect(_on_membership_change, sender=through.through, dispatch_uid="audit")


def _name(row: Model) -> str:
    return str(row.pk) if isinstance(row, Group) else f"user:{row.pk}"


def _is_recorded(user: Any) -> bool:
    """Return whether the audit log records a user: in another project only staff, and no customers."""
    return bool(project.A2A_OWN_PROJECT or getattr(user, "is_staff", False))


def _on_sign_in(request: HttpRequest | None, user: AbstractUser, **_: Any) -> None:
    if not _is_recorded(user):
        return
    detail = {"address": address_of(request)} if request else None
    audit.note(Action.LOGIN, _name(user), actor=staff(user.pk), detail=detail)


def _on_sign_out(user: AbstractUser | None, **_: Any) -> None:
    if user is not None and _is_recorded(user):
        audit.note(Action.LOGOUT, _name(user), actor=staff(user.pk))


def _on_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Record the user only if it exists: people type passwords into the field of the name.

    Failures of HTTP Basic are recorded by `authentication`.
    """
    if request is None:
        return
    name = str(credentials.get(get_user_model().USERNAME_FIELD, ""))
    auth_failures.record_failed_sign_in(address_of(request), _find_user(name))


def _find_user(name: str) -> str:
    model: Any = get_user_model()
    if "\0" in name:
        return ""
    found = model.objects.filter(**{model.USERNAME_FIELD: name}).first()
    return _name(found) if found else ""


def _on_save(
    sender: type[Model],
    instance: Model,
    created: bool,
    raw: bool,
    update_fields: frozenset[str] | None = None,
    **_: Any,
) -> None:
    if raw or update_fields == SIGN_IN or (sender is not Group and not _is_recorded(instance)):
        return
    fields = " ".join(sorted(update_fields or ()))
    made, changed = (
        (Action.GROUP_CREATE, Action.GROUP_CHANGE)
        if sender is Group
        else (Action.USER_CREATE, Action.USER_CHANGE)
    )
    detail = {"fields": fields} if fields else None
    audit.note(made if created else changed, _name(instance), detail=detail)


def _on_delete(sender: type[Model], instance: Model, **_: Any) -> None:
    audit.note(Action.GROUP_DELETE if sender is Group else Action.USER_DELETE, _name(instance))


def _plain(key: Any) -> Any:
    """Return a primary key as JSON has it."""
    return key if isinstance(key, int) else str(key)


def _on_membership_change(
    sender: type[Model], instance: Model, action: str, pk_set: set[int] | None, **_: Any
) -> None:
    """Record changed groups of a user, and changed permissions of a user or group, from either side of the relation."""
    if action not in CHANGED or pk_set == set():
        return
    what = sender._meta.model_name  # noqa: SLF001 - Django's documented interface
    detail = {
        "what": what,
        "how": action.removeprefix("post_"),
        "which": sorted(map(_plain, pk_set or ())),
    }
    changed = Action.GROUP_CHANGE if isinstance(instance, Group) else Action.USER_CHANGE
    audit.note(changed, _name(instance), detail=detail)
