"""The page at `/api/v1/docs/`: for staff, of the host's own files, without a line of script or style in it."""

from __future__ import annotations

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from tests.support.console.api.world import API, person

pytestmark = pytest.mark.django_db

DOCS = f"{API}/docs/"


class TestThePage:
    def test_is_for_staff_and_others_may_sign_in(self) -> None:
        for who in (Client(), person(name="eve", staff=False)):
            answer = who.get(DOCS)
            assert (answer.status_code, answer.headers["location"]) == (
                302,
                f"/admin/login/?next={DOCS}",
            )
        assert person().get(DOCS).status_code == 200

    def test_loads_nothing_from_elsewhere_and_has_no_script_in_it(self) -> None:
        answer = person().get(DOCS)
        named = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
        assert named.pop(3) == "/admin/", "the way back"
        assert len(named) == 6
        assert all(url.startswith(("/static/", API)) for url in named)
        files = [url.removeprefix("/static/") for url in named if url.startswith("/static/")]
        assert [name for name in files if finders.find(name) is None] == []
        assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", answer.text) == []
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy

    @pytest.mark.parametrize("path", ["/api/", "/api/v1/"])
    def test_is_where_the_shorter_addresses_lead(self, path: str) -> None:
        answer = Client().get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, DOCS)
