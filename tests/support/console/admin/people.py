"""Who looks at the back office."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

__all__ = ["SignIn", "sign_in"]

SignIn = Callable[..., Client]


@pytest.fixture
def sign_in(client: Client) -> SignIn:
    """Sign in as Bob, staff, with these permissions and no others."""

    def bob(*permissions: str) -> Client:
        user = User.objects.create_user("bob", password="bob", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client.force_login(user)
        return client

    return bob
