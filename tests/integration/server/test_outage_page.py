"""Pages for people while the database is away."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client


def raising(fault: Exception) -> Any:
    """What the database answers from now on, for as long as the block lasts."""

    def refuse(*_: Any) -> NoReturn:
        raise fault

    return connection.execute_wrapper(refuse)


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/", "/admin/", "/admin/a2a_tasks/task/"])
def test_a_page_says_503_and_when_to_come_again(page: str) -> None:
    client = Client()
    client.cookies["sessionid"] = "a" * 32
    with raising(OperationalError("the database system is shutting down")):
        answer = client.get(page)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert b"shutting down" not in answer.content


@pytest.mark.django_db
def test_other_faults_stay_faults() -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    with raising(ProgrammingError("no such table")):
        assert client.get("/admin/").status_code == 500
