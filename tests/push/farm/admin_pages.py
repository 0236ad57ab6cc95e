"""What an operator is shown: every list of the admin, and some pages of each."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx

__all__ = ["admin_pages"]

NAME, PASSWORD = "farm-operator", "farm-operator-password"
#: Pages of single objects that are read of each list.
MOST = 15


def admin_pages(url: str, environ: Mapping[str, str], source: Path) -> Iterator[tuple[str, str]]:
    """Paths and texts, as a superuser of this host sees them; `environ` and `source` are the host's own."""
    _make_operator(environ, source)
    with httpx.Client(base_url=url, trust_env=False, follow_redirects=True, timeout=30) as client:
        client.get("/admin/login/")
        form = {
            "username": NAME,
            "password": PASSWORD,
            "csrfmiddlewaretoken": client.cookies["csrftoken"],
        }
        index = client.post(
            "/admin/login/", data={**form, "next": "/admin/"}, headers={"Referer": url}
        ).text
        yield "/admin/", index
        lists = sorted(set(re.findall(r'href="(/admin/a2a_\w+/\w+/)"', index)))
        if not lists:
            raise AssertionError(f"no lists in the admin: {index[:500]}")
        for path in lists:
            shown = client.get(path).text
            yield path, shown
            for page in sorted(set(re.findall(rf'href="({path}[^"?]+/change/)', shown)))[:MOST]:
                yield page, client.get(page).text


def _make_operator(environ: Mapping[str, str], source: Path) -> None:
    command = [sys.executable, "manage.py", "createsuperuser", "--noinput", "--skip-checks"]
    words = {"USERNAME": NAME, "PASSWORD": PASSWORD, "EMAIL": "farm@example.com"}
    own = {f"DJANGO_SUPERUSER_{name}": value for name, value in words.items()}
    subprocess.run(
        command,
        cwd=source,
        env={**environ, **own},
        check=False,  # there may be one already; if there is none, the login fails
        capture_output=True,
        timeout=60,
    )
