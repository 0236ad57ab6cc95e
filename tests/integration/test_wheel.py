"""A wheel has every file of the apps, and a host runs from it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from tests import ROOT
from tests.support.printing_process import Process
from tests.support.wheel import APPS, PIP, build_wheel

pytestmark = pytest.mark.checkout
ASK = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "SendStreamingMessage",
    "params": {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
}
VERSION = {"A2A-Version": "1.0"}
#: Renders three pages, and loads every template of the package.
PAGES = """
import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.template.loader import get_template
from django.test import Client

from a2a_tasks.agents.frameworks import list_frameworks

installed = Path(sys.argv[1])
assert settings.BASE_DIR == installed, settings.BASE_DIR
call_command("migrate", interactive=False, verbosity=0)
client = Client(SERVER_NAME="localhost")
for path in ("/", "/admin/login/"):
    page = client.get(path)
    assert page.status_code == 200, (path, page.status_code)
client.force_login(get_user_model().objects.create_superuser("ann"), settings.AUTHENTICATION_BACKENDS[-1])
page = client.get("/admin/a2a_tasks/task/")
assert page.status_code == 200, page.status_code
style = client.get("/static/a2a_console/page.css")
assert style.status_code == 200, style.status_code
assert len(list_frameworks()) == 8
for folder in (*installed.glob("a2a_*/templates"), installed / "a2a_project/host_templates"):
    for file in folder.rglob("*.html"):
        name = str(file.relative_to(folder))
        if name.partition("/")[0] not in ("account", "allauth"):
            get_template(name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_it_has_the_files_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.partition("/")[0] in APPS}
    assert packed == {
        str(file.relative_to(ROOT))
        for app in APPS
        for file in (ROOT / app).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_a_host_runs_from_it(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (tmp_path / "var").mkdir()
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "DJANGO_SETTINGS_MODULE": "a2a_project.settings",
        "PYTHONPATH": str(installed),
        "VAR_DIR": str(tmp_path / "var"),
    }
    before = _list_files(installed)
    _run(sys.executable, "-B", "-c", PAGES, str(installed), cwd=tmp_path, env=environment)
    assert _list_files(installed) == before


@pytest.mark.thorough
def test_a_project_made_by_its_command_answers_with_a_stream(wheel: Path, tmp_path: Path) -> None:
    _run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    (site,) = (tmp_path / "venv").glob("lib/*/site-packages")
    # What the package needs is that of this environment.
    (site / "needed.pth").write_text(str(Path(pytest.__file__).parents[1]))
    python, command = tmp_path / "venv/bin/python", tmp_path / "venv/bin/a2a-host"
    _run(
        *PIP, f"--python={python}", "install", "--no-deps", "--no-index", "--no-compile", str(wheel)
    )
    before = _list_files(site)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    environment = {**kept, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    _run(str(command), "new", "demo", cwd=tmp_path, env=environment)
    demo = tmp_path / "demo"
    own = (demo / "settings.py").read_text().split('"""')[-1].split("\n")
    assert sum(bool(line) for line in own) <= 6
    _run(str(command), "agent", "add", "weather", cwd=demo, env=environment)
    _run(str(command), "check", cwd=demo, env=environment)
    with Process(
        str(command), "up", cwd=demo, env={**environment, "PORT": "0", "A2A_GRPC_PORT": ""}
    ) as host:
        url = host.line("  start").split()[-1]
        for slug in ("hello", "weather"):
            with httpx.stream("POST", f"{url}agents/{slug}/", json=ASK, headers=VERSION) as answer:
                events = [line for line in answer.iter_lines() if line.startswith("data:")]
            assert "TASK_STATE_COMPLETED" in events[-1]
        host.signal(signal.SIGTERM)
        assert host.exit_code() == 0, host.transcript()
    assert _list_files(site) == before
    assert {path.name for path in demo.iterdir()} == {
        *("manage.py", "settings.py", "hello", "weather", "var"),
    }


def _list_files(folder: Path) -> set[Path]:
    """All files below a folder but compiled ones."""
    return {file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"}


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
