"""A Django project of somebody else, without the host and with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.support.ports import free_port
from tests.support.printing_process import Process

__all__ = ["PREFIX", "Project", "make_shop", "make_stock"]

PREFIX = "/a2a"
SHOP = Path(__file__).parent / "shop"
#: The lines with which the host comes into a project, by file.
LINES = {
    "settings.py": (
        'INSTALLED_APPS += ["support"]',
        "import a2a_host",
        "a2a_host.install(globals())",
    ),
    "asgi.py": ("import a2a_host", "application = a2a_host.asgi(application)"),
    "urls.py": ("import a2a_host", "urlpatterns += a2a_host.urls()"),
}


@dataclass(frozen=True)
class Project:
    """A project in a directory."""

    directory: Path
    settings: str
    #: Pages of its own admin, but for the index; `{user}` is the superuser.
    pages: tuple[str, ...]
    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> str:
        """Run Python in its environment, without the host's own; returns what it wrote to stdout."""
        done = subprocess.run(  # noqa: S603 - our own command lines
            [sys.executable, *arguments],
            cwd=self.directory,
            env=self._make_environ(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def manage(self, *arguments: str) -> str:
        """Run a command of its manage.py."""
        return self.run("manage.py", *arguments)

    def sign_in(self) -> tuple[str, ...]:
        """Make a superuser, and return the session and the key."""
        return tuple(self.run("-m", "lab.projects.pages", "make").split())

    def read(self, session: str, *urls: str) -> dict[str, Any]:
        """Return pages as the superuser sees them."""
        module = ("-m", "lab.projects.pages", "read")
        pages: dict[str, Any] = json.loads(self.run(*module, session, *urls).splitlines()[-1])
        return pages

    @contextmanager
    def served(self) -> Iterator[tuple[str, Process]]:
        """Serve it with `manage.py up`; yields the host's URL."""
        env = {
            **self._make_environ(),
            "PYTHONUNBUFFERED": "1",
            "PORT": "0",
            "A2A_GRPC_PORT": str(port := free_port()),
            "A2A_GRPC_URL": f"http://127.0.0.1:{port}",
            "A2A_ANONYMOUS": "1",
            "A2A_PLAYGROUND": "1",
        }
        with Process(sys.executable, str(self.directory / "manage.py"), "up", env=env) as server:
            yield server.line("  start", 200).split()[-1].rstrip("/"), server

    def _make_environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        path = os.pathsep.join([str(self.directory), str(ROOT)])
        # Some headers are made from sets.
        own = {"PYTHONPATH": path, "DJANGO_SETTINGS_MODULE": self.settings, "PYTHONHASHSEED": "0"}
        return {**kept, **self.environ, **own}

    def add_host(self) -> None:
        """Make the host part of it."""
        if self.settings == "shop.settings":
            self.environ["WITH_A2A"] = "1"
            return
        shutil.copytree(SHOP / "support", self.directory / "support")
        for name, lines in LINES.items():
            with (self.directory / "stock" / name).open("a") as file:
                file.write("\n" + "\n".join(lines) + "\n")


def make_stock(directory: Path) -> Project:
    """Return what `django-admin startproject` writes."""
    directory.mkdir()
    project = Project(
        directory,
        "stock.settings",
        (
            *("/admin/login/", "/admin/auth/", "/admin/auth/user/", "/admin/auth/user/add/"),
            *("/admin/auth/user/{user}/change/", "/admin/auth/user/{user}/history/"),
            *("/admin/auth/group/", "/admin/auth/group/add/", "/admin/password_change/"),
            *("/admin/auth/user/{user}/delete/", "/admin/jsi18n/", "/admin/nowhere/"),
        ),
    )
    project.run(
        "-m", "django", "startproject", "stock", ".", "--settings", "django.conf.global_settings"
    )
    return project


def make_shop(directory: Path) -> Project:
    """Return the shop, a project with much of its own."""
    shutil.copytree(SHOP, directory, ignore=shutil.ignore_patterns("__pycache__"))
    return Project(
        directory,
        "shop.settings",
        (
            *("/office/login/", "/office/shop/", "/office/shop/product/", "/office/jsi18n/"),
            *("/office/shop/product/add/", "/office/shop/customer/", "/office/password_change/"),
            *("/office/shop/customer/{user}/change/", "/office/shop/customer/{user}/history/"),
            *("/api/tasks", "/office/nowhere/", "/nowhere"),
        ),
        {"SHOP_DIR": str(directory)},
    )
