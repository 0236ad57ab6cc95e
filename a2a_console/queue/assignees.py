"""The users to whom a task may be assigned: active staff who may answer and who see the task's tenant."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User
from django.db.models import Q, QuerySet

from a2a_console.staff import sees, tenants_of

__all__ = ["ANSWER", "CannotHave", "candidates", "find_user"]

#: The permission to answer and to assign.
ANSWER = "a2a_tasks.answer_task"
#: The largest number of suggested names.
MAX_COUNT = 200
BACKEND = "django.contrib.auth.backends.ModelBackend"


class CannotHave(Exception):
    """The user does not exist or may not have the task. The text is for the operator."""


def _who_may() -> QuerySet[User]:
    users: QuerySet[User] = get_user_model().objects.with_perm(ANSWER, backend=BACKEND)
    return users.filter(is_staff=True)


def candidates(viewer: AbstractBaseUser | AnonymousUser) -> list[str]:
    """Return names of possible assignees. A viewer who sees only some tenants gets members of the same groups only."""
    field = get_user_model().USERNAME_FIELD
    names = _who_may().order_by(field)
    if tenants_of(viewer) is not None:
        together = Group.objects.filter(user=viewer.pk)
        names = names.filter(Q(groups__in=together) | Q(pk=viewer.pk or 0))
    return list(names.distinct().values_list(field, flat=True)[:MAX_COUNT])


def find_user(name: str, tenant: str) -> User:
    """Return the user of that name, who may have a task of this tenant. Raises CannotHave."""
    user = _who_may().filter(**{get_user_model().USERNAME_FIELD: name}).first()
    if user is None or not sees(user, tenant):
        raise CannotHave(f"{name} is not among the staff who may answer tasks and see this tenant")
    return user
