"""Django's pages: a body that is too large does not get as far."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from a2a_project.asgi import application
from tests.support.bindings.client import Client

pytestmark = pytest.mark.django_db
FORM = {"content-type": "application/x-www-form-urlencoded"}


class TestABodyThatIsTooLarge:
    async def test_is_refused_when_it_says_so(self, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 100
        async with Client(application).exchange(
            "POST", "/admin/login/", {**FORM, "content-length": "101"}
        ) as asked:
            assert (await asked.response()).status == 413
            assert asked.taken == 0

    async def test_is_refused_as_soon_as_it_is(self, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 100
        async with Client(application).exchange("POST", "/admin/login/", FORM) as asked:
            for _ in range(11):
                asked.upload(b"x" * 10, more=True)
            assert (await asked.response()).status == 413

    async def test_what_fits_is_read_whole(self) -> None:
        asked = Client(application)
        answer = await asked.ask("POST", "/admin/login/", b"username=a&password=b", FORM)
        assert answer.status == 403  # the form came without its token, but it came
