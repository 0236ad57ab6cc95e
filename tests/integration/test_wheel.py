"""A wheel has every file of the apps, and a host runs from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import ROOT

APPS = ("a2a_console", "a2a_project", "a2a_push", "a2a_tasks")
METADATA = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "requirements.txt",
    "requirements-sso.txt",
    "requirements-langgraph.txt",
    "requirements-pydantic-ai.txt",
    "requirements-openai-agents.txt",
)
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
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
for folder in installed.glob("a2a_*/templates"):
    for file in folder.rglob("*.html"):
        name = str(file.relative_to(folder))
        if name.partition("/")[0] not in ("account", "allauth"):
            get_template(name)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, because setuptools writes beside the sources."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for app in APPS:
        shutil.copytree(ROOT / app, source / app, ignore=shutil.ignore_patterns("__pycache__"))
    for file in METADATA:
        shutil.copy(ROOT / file, source)
    build = ("wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir")
    _run(*PIP, *build, str(target), str(source))
    (built,) = target.glob("*.whl")
    return built


def test_it_has_the_files_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith(APPS)}
    assert packed == {
        str(file.relative_to(ROOT))
        for app in APPS
        for file in (ROOT / app).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_a_host_runs_from_it(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    _run(*PIP, "install", "--no-deps", "--no-index", "--target", str(installed), str(wheel))
    (tmp_path / "var").mkdir()
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "DJANGO_SETTINGS_MODULE": "a2a_project.settings",
        "PYTHONPATH": str(installed),
        "VAR_DIR": str(tmp_path / "var"),
    }
    _run(sys.executable, "-c", PAGES, str(installed), cwd=tmp_path, env=environment)


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
