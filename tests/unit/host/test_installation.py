"""What `install` adds to settings, and what it refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

import a2a_host
from a2a_project.json_line import JsonFormatter

STOCK: dict[str, Any] = {
    "BASE_DIR": Path("/srv/shop"),
    "INSTALLED_APPS": ("django.contrib.admin", "shop"),
    "MIDDLEWARE": ["shop.first", "shop.last"],
    "ROOT_URLCONF": "shop.urls",
    "DATABASES": {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db"}},
}


def install(**more: Any) -> dict[str, Any]:
    """The stock settings with these, and the host in them."""
    settings = copy.deepcopy({**STOCK, **more})
    a2a_host.install(settings)
    return settings


def test_what_is_there_stays_in_its_order() -> None:
    own = {
        "VAR_DIR": Path("/var/lib/shop"),
        "REDIS_URL": "redis://shop/3",
        "ASGI_APPLICATION": "shop.other.application",
        "STORAGES": {
            "default": {"BACKEND": "shop.Storage"},
            "a2a_files": {"BACKEND": "shop.Files"},
        },
        "CACHES": {"default": {"BACKEND": "shop.Cache"}},
        "DATABASES": {"default": {"ENGINE": "x.postgresql", "OPTIONS": {"connect_timeout": 9}}},
    }
    settings = install(**own)
    assert settings["INSTALLED_APPS"][:2] == list(STOCK["INSTALLED_APPS"])
    assert [name for name in settings["MIDDLEWARE"] if "shop" in name] == STOCK["MIDDLEWARE"]
    for name in ("VAR_DIR", "REDIS_URL", "ASGI_APPLICATION", "STORAGES"):
        assert settings[name] == own[name]
    assert settings["CACHES"]["default"] == {"BACKEND": "shop.Cache"}
    assert settings["DATABASES"]["default"]["OPTIONS"]["connect_timeout"] == 9


def test_a_project_without_logging_gets_the_host_s_if_a_format_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("A2A_LOG_FORMAT", raising=False)
    assert "LOGGING" not in install()
    monkeypatch.setenv("A2A_LOG_FORMAT", "json")
    assert install()["LOGGING"]["formatters"]["line"] == {"()": JsonFormatter}
    assert install(LOGGING={"version": 1})["LOGGING"] == {"version": 1}
    monkeypatch.setenv("A2A_LOG_FORMAT", "xml")
    with pytest.raises(ImproperlyConfigured, match="A2A_LOG_FORMAT must be text or json"):
        install()


def test_what_is_missing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAR_DIR", raising=False)
    settings = install()
    assert settings["ASGI_APPLICATION"] == "shop.asgi.application"
    assert settings["VAR_DIR"] == Path("/srv/shop/var")
    assert settings["STORAGES"].keys() == {"default", "staticfiles", "a2a_files"}
    assert settings["CACHES"].keys() == {"default", "a2a_playground"}
    assert settings["DATABASES"]["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_the_path_is_a2a_unless_another_one_is_chosen() -> None:
    assert install()["A2A_PREFIX"] == "/a2a"
    settings = copy.deepcopy(STOCK)
    a2a_host.install(settings, prefix="/agents/v1")
    assert settings["A2A_PREFIX"] == "/agents/v1"


def test_to_install_twice_changes_nothing_more() -> None:
    once = install()
    twice = copy.deepcopy(once)
    a2a_host.install(twice)
    assert twice == once


def test_a_project_that_serves_static_files_goes_on_doing_so() -> None:
    settings = install(MIDDLEWARE=["whitenoise.middleware.WhiteNoiseMiddleware"])
    assert "a2a_project.static_files.StaticFiles" not in settings["MIDDLEWARE"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"DATABASES": {"default": {"ENGINE": "django.db.backends.mysql"}}}, "not on 'django.db"),
        ({"DATABASES": {}}, "PostgreSQL and SQLite"),
        ({"USE_TZ": False}, "USE_TZ"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=reason):
        install(**more)


def test_a_call_before_the_settings_it_changes_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="must come after INSTALLED_APPS"):
        a2a_host.install({})


@pytest.mark.parametrize("prefix", ["a2a", "/a2a/", "/", "", "/a//b"])
def test_a_prefix_is_a_path(prefix: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="the prefix must be a path"):
        a2a_host.install(copy.deepcopy(STOCK), prefix=prefix)
