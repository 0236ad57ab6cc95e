"""System checks of settings that no room of its own has tests for."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_tasks.agents import registry
from a2a_tasks.checks import check_files, check_files_of_production, check_settings
from tests.support.rows import rows

KEY = "k" * 32


def test_a_host_as_it_comes_has_a_storage_of_files_and_a_way_to_fetch() -> None:
    assert [*check_files(), *check_files_of_production()] == []


@pytest.mark.parametrize(
    "storages", [{}, {"a2a_files": {"BACKEND": "no.such.Storage"}}], ids=["none", "unknown"]
)
def test_a_storage_that_cannot_be_made_is_told(storages: Any, settings: Any) -> None:
    others = {name: settings.STORAGES[name] for name in ("default", "staticfiles")}
    settings.STORAGES = {**others, **storages}
    assert [error.id for error in check_files()] == ["a2a_tasks.E031"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FETCH_ALLOW_NETWORKS", "10.1.0.1/16"),
        ("FETCH_PROXY", "https://proxy.corp"),
        ("FETCH_CA_BUNDLE", "/nowhere.pem"),
    ],
)
def test_what_cannot_be_read_of_fetching_is_told(name: str, value: str, settings: Any) -> None:
    setattr(settings, f"A2A_{name}", value)
    assert [error.id for error in check_files()] == ["a2a_tasks.E032"]


def test_an_open_loopback_is_told_before_a_deploy(settings: Any) -> None:
    settings.A2A_FETCH_ALLOW_PRIVATE = True
    assert [warning.id for warning in check_files_of_production()] == ["a2a_tasks.W033"]


def test_connections_that_stay_open_between_requests_are_told(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "CONN_MAX_AGE", 60)
    assert [error.id for error in check_settings()] == ["a2a_tasks.E014"]


def test_a_pool_that_passes_on_sessions_is_told(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"]["OPTIONS"], "pool", True)
    assert [error.id for error in check_settings()] == ["a2a_tasks.E066"]


@pytest.mark.parametrize("name", ["A2A_FILE_URLS", "A2A_LOG_FORMAT"])
def test_what_opens_urls_and_the_format_of_the_log_are_one_of_two_words(
    settings: Any, name: str
) -> None:
    setattr(settings, name, "open")
    assert [error.id for error in check_settings()] == ["a2a_tasks.E015"]


def test_an_agent_whose_queue_no_worker_is_to_serve_is_told(settings: Any) -> None:
    settings.A2A_QUEUES = "night, agents"
    assert [warning.id for warning in check_settings()] == []
    settings.A2A_QUEUES = "night"
    warnings = list(check_settings())
    assert {warning.id for warning in warnings} == {"a2a_tasks.W044"}
    assert "waits in the queue 'agents'" in str(warnings[0])
    settings.A2A_ENVIRONMENT = "adk"  # its worker takes from the queues of its versions
    assert "a2a_tasks.W044" not in {warning.id for warning in check_settings()}


def test_a_host_without_agents_is_not_told_that_it_lacks_the_default_one(settings: Any) -> None:
    settings.A2A_DISABLED_AGENTS = ",".join(registry.slugs())
    settings.A2A_DEFAULT_AGENT = ""
    assert "a2a_tasks.W011" not in {warning.id for warning in check_settings()}


@pytest.mark.parametrize("keys", ["adk", "adk=", f"adk={KEY},", f"={KEY}", ",", "adk=short"])
def test_an_environment_without_a_secret_is_told(keys: str, settings: Any) -> None:
    settings.A2A_ENVIRONMENT_KEYS = f"adk={KEY}, crewai={KEY}"
    settings.A2A_ENVIRONMENT_AGENTS = "adk=*,crewai=writer"
    assert [error.id for error in check_settings()] == []
    settings.A2A_ENVIRONMENT_KEYS = keys
    assert [error.id for error in check_settings()] == ["a2a_tasks.E054"]


def test_an_environment_that_may_announce_nothing_is_told(settings: Any) -> None:
    settings.A2A_ENVIRONMENT_KEYS = f"adk={KEY}, crewai={KEY}"
    settings.A2A_ENVIRONMENT_AGENTS = "adk=*"
    (warning,) = check_settings()
    assert warning.id == "a2a_tasks.W058"
    assert "'crewai'" in str(warning)


@rows(
    "url, said",
    [
        ("agents.example.com:443", ["a2a_tasks.W059"]),
        ("https://agents.example.com", []),
        ("http://127.0.0.1:50051/", []),
        ("grpc://agents.example.com", ["a2a_tasks.E059"]),
        ("https://agents.example.com/a2a", ["a2a_tasks.E059"]),
        ("https://user@agents.example.com", ["a2a_tasks.E059"]),
    ],
)
def test_an_address_of_grpc_that_is_no_url_of_a_server_is_told(
    url: str, said: list[str], settings: Any
) -> None:
    settings.A2A_GRPC_URL = url
    assert [message.id for message in check_settings()] == said
