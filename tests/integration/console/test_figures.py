"""`manage.py a2a figures`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from a2a_tasks.operations import figures
from tests.integration.console import a2a
from tests.support.ended_tasks import make_ended

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    figures.forget()
    yield
    figures.forget()


def test_tells_what_the_dashboard_shows() -> None:
    make_ended(agent="demo", tenant="acme", took=2.0)
    said = a2a("figures", "--period", "day")
    assert "1  Ended in the past 24 hours" in said
    assert "Webhooks" in said
    assert [line.split()[-1] for line in said.splitlines() if line.endswith(("demo", "acme"))] == [
        "demo",
        "acme",
    ]
