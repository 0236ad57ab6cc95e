"""What an operator is shown: every list of the admin, and some pages of each."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

__all__ = ["admin_pages", "make_operator"]

NAME, PASSWORD = "farm-operator", "farm-operator-password"
#: Pages of single objects that are read of each list.
MAX_COUNT = 15
#: Pages asked for at once.
AT_ONCE = 4


def admin_pages(url: str) -> Iterator[tuple[str, str]]:
    """Paths and texts, as a superuser of this host sees them, who is made by `make_operator`."""
    with (
        httpx.Client(base_url=url, trust_env=False, follow_redirects=True, timeout=30) as client,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        index = _logged_in(client, url)
        yield "/admin/", index
        lists = sorted(set(re.findall(r'href="(/admin/a2a_\w+/\w+/)"', index)))
        if not lists:
            raise AssertionError(f"no lists in the admin: {index[:500]}")
        pages: list[str] = []
        for path, shown in zip(lists, pool.map(client.get, lists), strict=True):
            yield path, shown.text
            pages += sorted(set(re.findall(rf'href="({path}[^"?]+/change/)', shown.text)))[
                :MAX_COUNT
            ]
        for path, shown in zip(pages, pool.map(client.get, pages), strict=True):
            yield path, shown.text


def _logged_in(client: httpx.Client, url: str) -> str:
    """The first page."""
    client.get("/admin/login/")
    form = {
        "username": NAME,
        "password": PASSWORD,
        "csrfmiddlewaretoken": client.cookies["csrftoken"],
        "next": "/admin/",
    }
    return client.post("/admin/login/", data=form, headers={"Referer": url}).text


def make_operator(environ: Mapping[str, str], source: Path) -> subprocess.Popen[bytes]:
    """Begin to make the superuser of a host, whose `environ` and `source` these are; wait for it before pages are read.

    There may be one already; if there is none, the login fails.
    """
    command = [sys.executable, "manage.py", "createsuperuser", "--noinput", "--skip-checks"]
    words = {"USERNAME": NAME, "PASSWORD": PASSWORD, "EMAIL": "farm@example.com"}
    own = {f"DJANGO_SUPERUSER_{name}": value for name, value in words.items()}
    said = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=source, env={**environ, **own}, stdout=said, stderr=said)
