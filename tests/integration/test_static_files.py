"""Static files are answered whole, with WhiteNoise's headers."""

from __future__ import annotations

import warnings

import pytest

from a2a_project.asgi import application
from tests.support.bindings.client import Client

pytestmark = pytest.mark.django_db
FILE = "/static/a2a_console/console.css"


async def test_a_file_is_answered_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = await Client(application).get(FILE)
    assert answer.status == 200
    assert b".a2a-badge" in answer.body
    assert answer.header("content-length") == str(len(answer.body))
    assert str(answer.header("content-type")).startswith("text/css")


async def test_a_range_of_a_file_and_one_that_has_not_changed_are_answered() -> None:
    client = Client(application)
    whole = await client.get(FILE)
    part = await client.get(FILE, headers={"range": "bytes=2-5"})
    assert (part.status, part.body) == (206, whole.body[2:6])
    changed = whole.header("last-modified")
    assert changed is not None
    same = await client.get(FILE, headers={"if-modified-since": changed})
    assert (same.status, same.body) == (304, b"")
