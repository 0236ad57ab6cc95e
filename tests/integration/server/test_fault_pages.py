"""Pages for people while the database is away."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NoReturn

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.signals import request_finished
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings

from a2a_project.fault_pages import FaultPages
from a2a_tasks.models import ApiKey


def raising(fault: Exception, cause: Exception | None = None) -> Any:
    """What the database answers from now on, for as long as the block lasts."""

    def refuse(*_: Any) -> NoReturn:
        raise fault from cause

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
@pytest.mark.parametrize("page", ["/admin/", "/api/v1/tasks/"])
def test_missing_rights_are_an_outage(page: str) -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    with raising(ProgrammingError("no"), psycopg.errors.InsufficientPrivilege("permission denied")):
        answer = client.get(page)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


@pytest.mark.django_db
def test_other_faults_stay_faults() -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    with raising(ProgrammingError("no such table")):
        assert client.get("/admin/").status_code == 500


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_a_page_does_not_wait_for_ever_for_what_somebody_has_locked(
    settings: Settings,
) -> None:
    settings.A2A_DATABASE_SECONDS = 0.5
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    connection.close()
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("set idle_in_transaction_session_timeout = '10s'")  # or the test would wait
        other.execute("lock table a2a_tasks_auditentry in exclusive mode")
        answer = client.post("/admin/a2a_tasks/apikey/add/", {"name": "one", "scopes": ""})
    assert answer.status_code == 503
    assert not ApiKey.objects.exists()
    assert client.get("/admin/").status_code == 200
    assert connection.execute_wrappers == []


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_nor_after_its_first_transaction_was_undone(settings: Settings) -> None:
    settings.A2A_DATABASE_SECONDS = 0.5

    def show(_: HttpRequest) -> HttpResponse:
        with suppress(LookupError), transaction.atomic():
            ApiKey.objects.exists()
            raise LookupError
        ApiKey.objects.update(name="")
        return HttpResponse()

    connection.close()
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("set idle_in_transaction_session_timeout = '10s'")  # or the test would wait
        other.execute("lock table a2a_tasks_apikey in exclusive mode")
        with pytest.raises(OperationalError, match="lock timeout"):
            FaultPages(show)(RequestFactory().get("/admin/"))


@pytest.mark.backend("stack")
@pytest.mark.django_db(transaction=True)
def test_the_limit_ends_with_the_page(settings: Settings) -> None:
    settings.A2A_DATABASE_SECONDS = 3

    def show(_: HttpRequest) -> HttpResponse:
        return HttpResponse(read())

    def read() -> str:
        with connection.cursor() as cursor:
            cursor.execute("show lock_timeout")
            (found,) = cursor.fetchone()
        return str(found)

    connection.close()
    answer = FaultPages(show)(RequestFactory().get("/admin/"))
    assert isinstance(answer, HttpResponse)
    assert answer.text == "3s"
    request_finished.send(None)
    assert read() == "0"
