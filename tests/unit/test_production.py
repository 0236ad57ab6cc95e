"""A production host as docs/production.md has it: nothing is left to warn of, and its secrets are where they should be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import ROOT

PYTHON = str(Path(sys.executable).parent)


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run it here with an app and nothing else in its environment."""
    path = f"{PYTHON}:{os.environ['PATH']}"
    return subprocess.run(  # noqa: S603 - words of the test
        command,
        cwd=ROOT,
        env={"PATH": path, "A2A_APPS": "examples.demo", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def block(tmp_path: Path) -> str:
    """The lines of the page; its two directories are in the test's own."""
    page = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    found = re.search(r"## A production host\n.*?```sh\n(.*?)```", page, re.DOTALL)
    assert found is not None
    (tmp_path / "etc").mkdir()
    for secret in ("secret_key", "audit_keys"):
        (tmp_path / "etc" / secret).write_text(os.urandom(32).hex() + "\n")
    lines = found[1].replace("/etc/a2a", f"{tmp_path}/etc")
    return lines.replace("/var/lib/a2a", f"{tmp_path}/var")


@pytest.fixture(scope="module")
def card_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys made as the page says: once, as it takes a process."""
    here = tmp_path_factory.mktemp("keys")
    keys = here / "card.keys"
    made = run(["python", "manage.py", "card_keys", "make", str(keys)], VAR_DIR=str(here / "var"))
    assert made.returncode == 0, made.stderr
    return keys


def checked(block: str, tmp_path: Path, card_keys: Path) -> subprocess.CompletedProcess[str]:
    """Run the lines of the page."""
    shutil.copy2(card_keys, tmp_path / "etc" / "card.keys")
    return run(["sh", "-ec", block])


def test_there_is_nothing_to_warn_of(block: str, tmp_path: Path, card_keys: Path) -> None:
    done = checked(block, tmp_path, card_keys)
    assert done.returncode == 0, done.stderr
    # the database of the page is not there, so nobody can be asked whether its secrets open
    assert re.findall(r"\((\w+\.[A-Z]\d+)\)", done.stderr) == ["a2a_tasks.I045"]


#: What the page tells an operator to set, and the warning without it.
MISSED = {
    r"export SECRET_KEY=.*": "a2a_tasks.W031",
    r"export A2A_CARD_KEYS=.*": "a2a_tasks.W014",
    r"export A2A_AUDIT_KEYS=.*": "a2a_tasks.W040",
    r"SECURE_SSL_REDIRECT=1": "security.W008",
    r"SECURE_HSTS_SECONDS=\d+": "security.W004",
}


def test_what_is_left_out_is_missed(block: str, tmp_path: Path, card_keys: Path) -> None:
    for line in MISSED:
        block, count = re.subn(line, "", block)
        assert count == 1
    done = checked(block, tmp_path, card_keys)
    assert done.returncode == 1
    assert [warning for warning in MISSED.values() if warning not in done.stderr] == []


PAGES = """
import django, json
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
client = Client()
plain = client.get("/admin/login/", headers={"host": "agents.example.com"})
page = client.get("/admin/login/", secure=True, headers={"host": "agents.example.com"})
cookie = page.cookies["csrftoken"]
print(json.dumps({
    "redirect": [plain.status_code, plain.headers.get("Location", "")],
    "hsts": page.headers.get("Strict-Transport-Security", ""),
    "cookie": [bool(cookie["secure"]), bool(cookie["httponly"]), cookie["samesite"]],
}))
"""


def pages(environment: Mapping[str, str]) -> str:
    """What a host with these variables does with its pages."""
    done = run(
        ["python", "-c", PAGES], DJANGO_SETTINGS_MODULE="a2a_project.settings", **environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def production(tmp_path: Path) -> dict[str, str]:
    """Variables of a host in production."""
    return {
        "VAR_DIR": str(tmp_path),
        "SECRET_KEY": "x" * 60,
        "DATABASE_URL": f"sqlite:///{tmp_path}/production.sqlite3",
        "ALLOWED_HOSTS": "agents.example.com",
    }


def test_pages_come_over_tls_alone(production: dict[str, str]) -> None:
    said = pages({**production, "SECURE_SSL_REDIRECT": "1", "SECURE_HSTS_SECONDS": "3600"})
    assert '"redirect": [301, "https://agents.example.com/admin/login/"]' in said
    assert '"hsts": "max-age=3600"' in said
    assert '"cookie": [true, true, "Lax"]' in said


FORM = """
import django
django.setup()
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
client = Client(enforce_csrf_checks=True, headers={"host": "inside:8000"})
page = client.get("/admin/login/")
form = {"csrfmiddlewaretoken": page.cookies["csrftoken"].value, "username": "x", "password": "y"}
for origin in ("https://agents.example.com", "https://elsewhere.example.com"):
    print(client.post("/admin/login/", form, headers={"origin": origin}).status_code)
"""


def test_forms_of_the_public_url_are_taken_behind_a_proxy_that_has_another_name(
    production: dict[str, str],
) -> None:
    public = {"A2A_PUBLIC_URL": "https://agents.example.com/", "ALLOWED_HOSTS": "inside"}
    public["CSRF_TRUSTED_ORIGINS"] = ""  # as docker-compose.yml leaves it
    environment = {**production, **public, "DJANGO_SETTINGS_MODULE": "a2a_project.settings"}
    done = run(["python", "-c", FORM], **environment)
    assert done.stdout.split() == ["200", "403"], done.stderr


@pytest.mark.thorough
def test_pages_come_without_tls_where_that_is_said(production: dict[str, str]) -> None:
    said = pages({**production, "SECURE_COOKIES": "0"})
    assert '"redirect": [200, ""]' in said
    assert '"hsts": ""' in said
    assert '"cookie": [false, true, "Lax"]' in said


KEY = "from a2a_project import settings; print(settings.SECRET_KEY)"


def test_the_embedded_host_makes_one_key_and_keeps_it_to_itself(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as several:
        started = [
            several.submit(run, ["python", "-c", KEY], VAR_DIR=str(tmp_path / "var"))
            for _ in range(4)
        ]
        keys = {process.result().stdout for process in started}
    assert len(keys) == 1
    assert len(keys.pop().strip()) >= 60
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o777 == 0o600
    made = {path.name for path in (tmp_path / "var").iterdir() if path.is_file()}
    assert made == {"host.sqlite3", "secret_key"}


MODES = """
import django, pathlib, sys; django.setup()
from django.db import connection
from a2a_project import settings
connection.cursor().execute("create table if not exists t (a)")
for path in sorted(pathlib.Path(settings.VAR_DIR).glob("host.sqlite3*")):
    print(path.name, oct(path.stat().st_mode & 0o777))
with connection.cursor() as cursor:
    print(*(cursor.execute(f"pragma {name}").fetchone()[0] for name in ("journal_mode", "synchronous")))
"""


def modes(var: Path) -> str:
    """Of the database's files while a process of the embedded host has it open; and how it writes."""
    said = {"VAR_DIR": str(var), "DJANGO_SETTINGS_MODULE": "a2a_project.settings"}
    done = run(["python", "-c", MODES], **said)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_embedded_host_keeps_its_database_to_itself_and_writes_to_the_disk(
    tmp_path: Path,
) -> None:
    """2 is FULL: every commit reaches the disk. With NORMAL a power cut takes back what was acknowledged."""
    names = ("host.sqlite3", "host.sqlite3-shm", "host.sqlite3-wal")
    said = "".join(f"{name} 0o600\n" for name in names)
    assert modes(tmp_path / "var") == f"{said}wal 2\n"


@pytest.mark.thorough
def test_a_database_that_is_there_keeps_the_mode_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    shared = tmp_path / "var" / "host.sqlite3"
    shared.touch()
    shared.chmod(0o660)
    assert "host.sqlite3 0o660\n" in modes(tmp_path / "var")
