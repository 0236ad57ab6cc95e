"""What a project shows to its staff: `python -m lab.projects.pages make`, then `read SESSION URL...`.

Run in the project's environment. `make` signs a superuser in and prints the session and the user's key, `read` prints the
pages as JSON.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - it needs the apps
from django.test import Client  # noqa: E402

#: What differs each time, and what the tables of any other app add: their permissions.
CHANGES = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"|"csrfToken": "\w+"|<option value="\d+"[^>]*>A2A [^<]*</option>\s*'
)


def make() -> None:
    """Make a superuser."""
    users: Any = get_user_model()
    user = users.objects.create_superuser(
        **{users.USERNAME_FIELD: "ann@shop.example", "email": "ann@shop.example", "password": "x"}
    )
    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(user)
    print(client.cookies["sessionid"].value, user.pk)


def read(session: str, *urls: str) -> None:
    """Print status, headers and text of each page."""
    client = Client(SERVER_NAME="127.0.0.1", raise_request_exception=False)
    client.cookies["sessionid"] = session
    pages = {}
    for url in urls:
        page = client.get(url)
        text = page.content.decode()
        headers = {name: value for name, value in page.headers.items() if name != "Expires"}
        text = CHANGES.sub("", text)
        headers["Content-Length"] = ""  # tokens have one length, permissions have not
        pages[url] = [page.status_code, headers, text]
    print(json.dumps(pages))


if __name__ == "__main__":
    make() if sys.argv[1] == "make" else read(*sys.argv[2:])
