"""Who signs in: the operator, who may do everything, and a member of staff, who may in one tenant."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

__all__ = ["ACME", "PASSWORD", "Person", "operator", "signed_in", "staff"]

#: The one tenant that the member of staff sees.
ACME = "acme"
PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Person:
    """Somebody with an account."""

    name: str
    password: str = PASSWORD


def operator(name: str = "root") -> Person:
    """A superuser. Blocks; for fixtures that are no coroutines, as what follows."""
    return _made(name, is_staff=True, is_superuser=True)


def staff(name: str = "anna", tenant: str = ACME) -> Person:
    """Somebody who may do in one tenant whatever there is a permission for, but does not see all tenants."""
    person = _made(name, is_staff=True)
    user = User.objects.get(username=name)
    user.groups.add(Group.objects.get_or_create(name=f"tenant:{tenant}")[0])
    ours = Permission.objects.filter(content_type__app_label__in=["a2a_tasks", "a2a_push"])
    user.user_permissions.set(ours.exclude(codename="see_all_tenants"))
    return person


def _made(name: str, **rights: bool) -> Person:
    # As the host's own processes read it: they do not know the quick one of the tests.
    password = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
    User.objects.create(username=name, password=password, **rights)
    return Person(name)


def signed_in(person: Person) -> str:
    """A new session of the person: what its cookie holds."""
    client = Client()
    client.force_login(
        User.objects.get(username=person.name),
        backend="django.contrib.auth.backends.ModelBackend",
    )
    return client.cookies[settings.SESSION_COOKIE_NAME].value
