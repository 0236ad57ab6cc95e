"""Who visits the pages whose policy is looked at, and which pages there are."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from tests.integration.console.admin.pages import everything, pages

__all__ = ["operator", "places"]


@pytest.fixture
def operator(db: None) -> None:
    """Somebody who may sign in, and things to look at."""
    root = User.objects.create_superuser("root", password="correct horse")
    root.groups.add(Group.objects.create(name="tenant:acme"))
    everything()


@pytest.fixture
def places(operator: None) -> list[str]:
    return pages()
