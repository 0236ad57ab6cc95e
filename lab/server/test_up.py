"""`manage.py up`: what it makes ready, and what it tells the person who started it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError, ProgrammingError
from django.http import HttpRequest

from a2a_project.management.commands import up
from a2a_project.management.commands.serve import Address, read_address
from a2a_project.management.commands.up import (
    admin_notice,
    banner,
    create_first_admin,
    migrate,
    try_it,
)
from a2a_project.open_address import refuse_open_address
from a2a_tasks.access.authentication import allows_anonymous
from a2a_tasks.management.database import CONNECT
from a2a_tasks.process import address_of, listen

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

HERE = Address("127.0.0.1", 8123)


@pytest.mark.django_db
class TestTheFirstAdmin:
    def test_gets_a_password_that_works_and_is_shown_once(self) -> None:
        password = create_first_admin("")
        assert password
        assert password in admin_notice(password)
        admin = authenticate(HttpRequest(), username="admin", password=password)
        assert admin is not None
        assert admin.is_superuser
        assert create_first_admin("") is None

    def test_gets_the_password_of_the_operator_which_is_not_shown(self) -> None:
        assert create_first_admin("of the operator") == ""
        assert authenticate(HttpRequest(), username="admin", password="of the operator") is not None
        assert "of the operator" not in admin_notice("")

    def test_is_not_made_where_there_is_a_superuser_of_any_name(self) -> None:
        get_user_model().objects.create_superuser("root", password="x")
        assert create_first_admin("") is None
        assert not get_user_model().objects.filter(username="admin").exists()

    def test_does_not_take_over_an_ordinary_user_of_that_name(self) -> None:
        get_user_model().objects.create_user("admin", password="x")
        with pytest.raises(CommandError, match="createsuperuser"):
            create_first_admin("")


@pytest.mark.django_db
def test_a_database_that_is_up_to_date_is_left_alone() -> None:
    assert migrate() is False


@pytest.mark.parametrize(
    "fault",
    [
        OperationalError("connection refused\n"),
        ProgrammingError("permission denied for table django_migrations\n"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line_with_its_own_words(
    fault: DatabaseError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise fault

    monkeypatch.setattr(up, "count_missing_migrations", refuse)
    with pytest.raises(CommandError) as told:
        migrate()
    assert str(told.value) == f"The database cannot be used: {str(fault).strip()}. {CONNECT}"


def test_the_banner_names_what_to_open() -> None:
    text = banner(HERE)
    for path in ("", "admin/", "agents/", "agents/demo/", ".well-known/agent-card.json"):
        assert f" http://127.0.0.1:8123/{path}\n" in text


def test_the_line_to_try_is_one_shell_command_with_a_message_of_a2a_1_0() -> None:
    words = shlex.split(try_it(HERE.url))
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8123/agents/demo/"]
    assert "A2A-Version: 1.0" in words
    request = json.loads(words[-1])
    assert request["method"] == "SendMessage"
    assert request["params"]["message"]["parts"] == [{"text": "echo hello"}]
    assert request["params"]["message"]["role"] == "ROLE_USER"


def test_the_line_to_try_has_a_place_for_the_key_where_one_is_needed(settings: Settings) -> None:
    settings.A2A_ANONYMOUS = "1"
    assert not [word for word in shlex.split(try_it(HERE.url)) if "YOUR-KEY" in word]
    settings.A2A_ANONYMOUS = "0"
    words = shlex.split(try_it(HERE.url))
    assert words[words.index("X-API-Key: YOUR-KEY") - 1] == "-H"


@pytest.mark.parametrize(
    ("asked", "embedded", "allowed"),
    [("auto", True, True), ("auto", False, False), ("1", False, True), ("0", True, False)],
)
def test_it_says_aloud_that_anybody_may_call(
    settings: Settings, asked: str, embedded: bool, allowed: bool
) -> None:
    settings.A2A_ANONYMOUS, settings.A2A_EMBEDDED = asked, embedded
    assert allows_anonymous() is allowed
    assert ("EVERYONE" in banner(HERE)) is allowed


class TestAnAddressThatOthersReach:
    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "agents.example"])  # noqa: S104 - refused
    def test_is_refused_until_somebody_says_who_may_call(
        self, settings: Settings, host: str
    ) -> None:
        settings.A2A_ANONYMOUS, settings.A2A_EMBEDDED = "auto", True
        for command in ("up", "serve", "serve_grpc"):
            with pytest.raises(CommandError) as told:
                call_command(command, host=host, port=0)
            for word in (host, "A2A_ANONYMOUS=0", "A2A_ANONYMOUS=1", "HOST=127.0.0.1"):
                assert word in str(told.value)

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    def test_is_not_that_of_this_machine_alone(self, settings: Settings, host: str) -> None:
        settings.A2A_ANONYMOUS, settings.A2A_EMBEDDED = "auto", True
        refuse_open_address(host)

    @pytest.mark.parametrize(("asked", "embedded"), [("1", True), ("0", True), ("auto", False)])
    def test_is_taken_where_it_was_said(
        self, settings: Settings, asked: str, embedded: bool
    ) -> None:
        settings.A2A_ANONYMOUS, settings.A2A_EMBEDDED = asked, embedded
        refuse_open_address("0.0.0.0")  # noqa: S104 - nothing listens


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (Address("0.0.0.0", 80), "http://localhost:80/"),  # noqa: S104 - only shown
        (Address("::1", 80), "http://[::1]:80/"),
        (Address("agents.example", 80), "http://agents.example:80/"),
    ],
)
def test_the_url_is_one_a_person_can_open(address: Address, url: str) -> None:
    assert address.url == url


@pytest.mark.parametrize("port", ["http", "-1", "65536", ""])
def test_a_port_that_is_none_is_refused_by_its_name(port: str) -> None:
    with pytest.raises(CommandError, match="PORT"):
        read_address({"host": "127.0.0.1", "port": port})


@pytest.mark.django_db(transaction=True)  # `serve` looks whether its tables are there
def test_a_port_in_use_is_named_together_with_the_way_out() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = address_of(taken)[1]
        options: dict[str, Any] = {"host": "127.0.0.1", "port": str(port)}
        with pytest.raises(CommandError, match=f"Port {port} .* is taken .* PORT="):
            call_command("serve", **options)
