"""Settings: each with a type, read at access, and a mistake that is named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_type_hints
from unittest import mock

import pytest

from a2a_tasks.checks import check_settings
from a2a_tasks.conf import HostSettings, conf, forget, names, project
from tests.support.rows import rows

TYPES = get_type_hints(HostSettings)
NUMBERS = [name for name, kind in TYPES.items() if kind in {int, float}]
SWITCHES = [name for name, kind in TYPES.items() if kind is bool]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Settings are remembered; no test sees another's."""
    forget()
    yield
    forget()


@contextmanager
def by_itself() -> Iterator[None]:
    """A row sees no variable of another's."""
    with mock.patch.dict(os.environ):
        forget()
        yield
        forget()


def environ(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> Any:
    """What a setting is with that in the environment."""
    monkeypatch.setitem(os.environ, f"A2A_{name}", value)
    forget()
    return getattr(conf, name)


@rows("name", names())
def test_the_default_is_of_its_type(name: str) -> None:
    assert type(getattr(conf, name)) is TYPES[name]


@rows("name", names(), within=by_itself)
def test_the_environment_is_read_as_its_type(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = environ(monkeypatch, name, "1")
    assert type(value) is TYPES[name]
    assert value == TYPES[name](1)


@rows("name", names(), within=by_itself)
def test_djangos_settings_come_first(
    name: str, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    environ(monkeypatch, name, "1")
    marker = TYPES[name](7)
    setattr(settings, f"A2A_{name}", marker)
    assert getattr(conf, name) is marker


def unnamed(value: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The numbers that take this value, or do not say which of them was wrong."""
    found = []
    for name in NUMBERS:
        try:
            environ(monkeypatch, name, value)
        except ValueError as fault:
            if f"A2A_{name}" in str(fault):
                continue
        finally:
            monkeypatch.delitem(os.environ, f"A2A_{name}")
        found.append(name)
    return found


@pytest.mark.parametrize("value", ["", "many", "1,5"])
def test_a_number_that_is_none_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unnamed(value, monkeypatch) == ([] if value else ["GRPC_PORT"])  # empty = off


@pytest.mark.parametrize("value", ["-1", "nan"])
def test_a_number_no_host_can_live_with_is_named(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unnamed(value, monkeypatch) == []


@rows("name", SWITCHES, within=by_itself)
def test_a_switch_is_on_or_off(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [environ(monkeypatch, name, value) for value in ("1", "true", "Yes", " ON ")] == [
        True
    ] * 4
    assert [environ(monkeypatch, name, value) for value in ("0", "false", "No", "off", "")] == [
        False
    ] * 5
    with pytest.raises(ValueError, match=f"A2A_{name}"):
        environ(monkeypatch, name, "maybe")


def test_a_setting_is_a_plain_attribute_from_its_first_read_until_all_are_forgotten() -> None:
    read = {"MAX_PARTS": conf.MAX_PARTS}, {"VAR_DIR": project.VAR_DIR}
    assert (vars(conf), vars(project)) == read
    forget()
    assert (vars(conf), vars(project)) == ({}, {})


def test_a_name_that_is_no_setting_is_a_mistake() -> None:
    with pytest.raises(AttributeError):
        _ = conf.NO_SUCH_SETTING  # type: ignore[attr-defined]


@rows("name", [*NUMBERS, *SWITCHES], within=by_itself)
def test_the_check_at_start_names_a_wrong_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, f"A2A_{name}", "maybe")
    forget()
    assert any(f"A2A_{name}" in message.msg for message in check_settings())


def test_the_defaults_pass_the_checks() -> None:
    assert [message.id for message in check_settings() if message.is_serious()] == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"A2A_BEAT_SECONDS": 3.0, "A2A_LEASE_SECONDS": 6.0}, "a2a_tasks.E011"),
        ({"A2A_RUNS": "elsewhere"}, "a2a_tasks.E012"),
        ({"A2A_RUNS": "celery", "A2A_CELERY_BROKER_URL": ""}, "a2a_tasks.E013"),
        ({"A2A_CELERY_BROKER_URL": "redis://x", "REDIS_URL": ""}, "a2a_tasks.W010"),
        ({"A2A_DEFAULT_AGENT": "nobody"}, "a2a_tasks.W011"),
    ],
)
def test_settings_that_do_not_fit_together_are_named(
    changes: dict[str, Any], expected: str, settings: Any
) -> None:
    for name, value in changes.items():
        setattr(settings, name, value)
    assert expected in [message.id for message in check_settings()]
