"""Single sign-on and the second factor, on a host of its own that has the extra switched on."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import html
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from lab.sign_in.issuer import CLIENT, SECRET, Login, logging_in
from tests import backend
from tests.integration.access.test_routes import STOCK, known
from tests.integration.console.admin.test_policy import inline
from tests.support.processes import python

#: It has a database of its own, so that tables of the extra are in no other test's.
pytestmark = [pytest.mark.backend("sqlite"), pytest.mark.timeout(300)]

PASSWORD = "correct horse battery"
EXTRA = {"A2A_ADMIN_MFA": "required"}
GROUPS = """
from django.contrib.auth.models import Group
Group.objects.bulk_create([Group(name="tenant:acme"), Group(name="operators")])
"""
Start = Callable[..., str]

#: What the extra brings: a stranger's GET of it, 200 only for the login.
ADDED = {
    f"accounts/{page}"
    for page in (
        *("login/", "logout/", "inactive/", "reauthenticate/", "cancelled/", "error/"),
        *("2fa/", "2fa/authenticate/", "2fa/reauthenticate/"),
        *("2fa/totp/activate/", "2fa/totp/deactivate/"),
        *(f"2fa/recovery-codes/{page}" for page in ("", "generate/", "download/")),
        *("oidc/^(?P<provider_id>[^/]+)/login/", "oidc/^(?P<provider_id>[^/]+)/login/callback/"),
    )
}


#: Those without a part that varies; and what a stranger gets of those that send nobody to sign in.
STRANGERS = {page for page in ADDED if "(" not in page}
OPEN = {
    "accounts/login/": 200,
    "accounts/inactive/": 200,
    "accounts/cancelled/": 200,
    "accounts/error/": 401,
}
#: Tables of the extra in the admin.
TABLES = {"admin/mfa/authenticator/", "admin/socialaccount/socialaccount/"}


def manage(environ: dict[str, str], *words: str) -> str:
    """Run a command of the host."""
    done = subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, "manage.py", *words],
        env={**backend.children(), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a host with these variables; its address."""
    with ExitStack() as stack:

        def started(**environ: str) -> str:
            own = {"VAR_DIR": str(tmp_path), "ADMIN_PASSWORD": PASSWORD, "PORT": "0", **environ}
            child = stack.enter_context(python(["manage.py", "up"], own))
            child.wait_for("Ctrl-C")
            found = re.search(r"http://127\.0\.0\.1:\d+", child.log)
            assert found is not None, child.log
            if "A2A_SSO_OIDC_ISSUER" in environ:
                manage(own, "shell", "-c", GROUPS)
            return found[0]

        yield started


@pytest.fixture
async def issuer() -> AsyncIterator[Login]:
    """The issuer of the test."""
    async with logging_in() as made:
        yield made


@pytest.fixture
def environ(issuer: Login) -> dict[str, str]:
    """The variables of single sign-on, as an operator sets them."""
    return {
        "A2A_SSO_OIDC_ISSUER": issuer.url,
        "A2A_SSO_CLIENT_ID": CLIENT,
        "A2A_SSO_CLIENT_SECRET": SECRET,
        "A2A_SSO_GROUPS": "acme-people=tenant:acme, ops=operators",
    }


def browser(url: str) -> httpx.AsyncClient:
    """Somebody's browser."""
    return httpx.AsyncClient(base_url=url, follow_redirects=True)


async def submit(client: httpx.AsyncClient, page: httpx.Response, **said: str) -> httpx.Response:
    """Fill in the form of a page."""
    assert inline(page.text) == []
    assert "script-src 'self'" in page.headers["content-security-policy"]
    token = re.search(r'name="csrfmiddlewaretoken" value="(.*?)"', page.text)
    assert token is not None, page.text
    return await client.post(page.url, data={"csrfmiddlewaretoken": token[1], **said})


async def by_password(client: httpx.AsyncClient, password: str = PASSWORD) -> httpx.Response:
    """Name and password, where the admin asks for them."""
    page = await client.get("/admin/")
    assert page.url.path == "/accounts/login/"
    return await submit(client, page, login="admin", password=password)


async def by_issuer(client: httpx.AsyncClient) -> httpx.Response:
    """The link to the issuer, and back."""
    page = await client.get("/admin/")
    link = re.search(r'href="(/accounts/oidc/sso/login/.*?)"', page.text)
    assert link is not None, page.text
    return await client.get(html.unescape(link[1]))


def code_of(secret: str, at: float) -> str:
    """What an authenticator shows (RFC 6238)."""
    counter = int(at // 30).to_bytes(8, "big")
    digest = hmac.digest(base64.b32decode(secret), counter, hashlib.sha1)
    start = digest[-1] & 15
    number = int.from_bytes(digest[start : start + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


class TestSingleSignOn:
    async def test_makes_staff_of_members_of_named_groups_alone(
        self, start: Start, issuer: Login, environ: dict[str, str]
    ) -> None:
        url = await asyncio.to_thread(start, **environ)
        async with browser(url) as stranger:
            for place in sorted(STRANGERS):
                page = await stranger.get(f"/{place}", follow_redirects=False)
                assert page.status_code == OPEN.get(place, 302), place
                assert inline(page.text) == []
            page = await stranger.get("/accounts/oidc/sso/login/callback/?code=x&state=y")
            assert page.status_code == 401
            assert (await stranger.get("/admin/")).url.path == "/accounts/login/"
        issuer.person["groups"] = ["acme-people", "others"]
        async with browser(url) as alice:
            page = await by_issuer(alice)
            assert (page.url.path, page.status_code) == ("/admin/", 200)
            assert "alice" in page.text
            assert (await alice.get("/admin/auth/user/")).status_code == 403
        issuer.person = {"sub": "bob", "preferred_username": "admin", "groups": ["others"]}
        async with browser(url) as bob:
            page = await by_issuer(bob)
            assert page.status_code == 403
            assert (await bob.get("/admin/")).url.path == "/accounts/login/"
        issuer.person = {"sub": "alice", "preferred_username": "alice", "groups": []}
        async with browser(url) as alice:
            assert (await by_issuer(alice)).status_code == 403
        assert issuer.asked.count("/token") == 3

    async def test_takes_nobody_for_a_user_who_was_here(
        self, start: Start, issuer: Login, environ: dict[str, str], tmp_path: Path
    ) -> None:
        url = await asyncio.to_thread(start, **environ)
        issuer.person = {
            "sub": "mallory",
            "preferred_username": "admin",
            "groups": ["ops"],
            "email": "admin@localhost",
            "email_verified": True,
        }
        async with browser(url) as mallory:
            assert (await by_issuer(mallory)).url.path == "/admin/"
            assert (await mallory.get("/admin/auth/user/")).status_code == 403
        users = "from django.contrib.auth.models import User; print(User.objects.filter(is_superuser=True).count(), User.objects.count())"
        own = {"VAR_DIR": str(tmp_path), **environ}
        counted = await asyncio.to_thread(manage, own, "shell", "-c", users)
        assert counted.split()[-2:] == ["1", "2"]

    async def test_comes_back_to_the_public_url_whatever_the_proxy_says(
        self, start: Start, environ: dict[str, str]
    ) -> None:
        """The page after the issuer's is at A2A_PUBLIC_URL, and so is the URI that redeems the code."""
        at, loopback = "https://agents.example.com", "127.0.0.1"
        url = start(**environ, A2A_PUBLIC_URL=at, TRUSTED_PROXIES=loopback)
        for more in ({}, {"X-Forwarded-Proto": "https, http"}, {"X-Forwarded-Proto": "https"}):
            async with httpx.AsyncClient(base_url=url, headers=more) as client:
                page = await client.get("/accounts/oidc/sso/login/")
                token = re.search(r'name="csrfmiddlewaretoken" value="(.*?)"', page.text)
                if token is not None:
                    data = {"csrfmiddlewaretoken": token[1]}
                    page = await client.post("/accounts/oidc/sso/login/", data=data)
                asked = httpx.URL(page.headers["location"]).params
                assert asked["redirect_uri"] == f"{at}/accounts/oidc/sso/login/callback/"

    @pytest.mark.parametrize("process", ["connect", "redirect"])
    async def test_ties_no_account_of_the_issuers_to_who_is_signed_in(
        self,
        start: Start,
        issuer: Login,
        environ: dict[str, str],
        tmp_path: Path,
        process: str,
    ) -> None:
        """A link of somebody else's is enough to ask for it: it is a GET."""
        url = await asyncio.to_thread(start, **environ)
        issuer.person = {"sub": "mallory", "preferred_username": "mallory", "groups": ["ops"]}
        async with browser(url) as root:
            assert (await by_password(root)).url.path == "/admin/"
            page = await root.get(f"/accounts/oidc/sso/login/?process={process}")
            assert page.status_code == 403
            assert (await root.get("/admin/auth/user/")).status_code == 200
        rows = (
            "from django.contrib.auth.models import User; "
            "from allauth.socialaccount.models import SocialAccount; "
            "print(User.objects.filter(is_superuser=True).count(), SocialAccount.objects.count())"
        )
        own = {"VAR_DIR": str(tmp_path), **environ}
        counted = await asyncio.to_thread(manage, own, "shell", "-c", rows)
        assert counted.split()[-2:] == ["1", "0"]


class TestTheSecondFactor:
    async def test_is_made_before_the_admin_is_seen_and_asked_for_ever_after(
        self, start: Start, tmp_path: Path
    ) -> None:
        url = await asyncio.to_thread(start, **EXTRA, A2A_LOGIN_FAILURES="3")
        async with browser(url) as root:
            page = await by_password(root)
            assert page.url.path == "/accounts/reauthenticate/"
            for place in ("/admin/a2a_tasks/task/", "/api/v1/docs/"):
                assert (await root.get(place)).url.path == page.url.path
            assert (await root.get("/api/v1/tasks")).status_code == 401
            page = await submit(root, page, password=PASSWORD)
            assert page.url.path == "/accounts/2fa/totp/activate/"
            secret = re.search(r'value="([A-Z2-7]{32})"', page.text)
            assert secret is not None, page.text
            # Of now, and below of the half minute after: either may end before the host looks.
            page = await submit(root, page, code=code_of(secret[1], time.time()))
            assert page.url.path == "/accounts/2fa/recovery-codes/", page.text
            assert inline(page.text) == []
            assert (await root.get("/admin/")).url.path == "/admin/"
        row = "from allauth.mfa.models import Authenticator as A; print(A.objects.filter(type='totp').get().data)"
        own = {"VAR_DIR": str(tmp_path), **EXTRA}
        assert secret[1] not in await asyncio.to_thread(manage, own, "shell", "-c", row)
        async with browser(url) as root:
            page = await by_password(root)
            assert page.url.path == "/accounts/2fa/authenticate/"
            page = await root.get("/admin/")
            assert page.url.path == "/accounts/2fa/authenticate/"
            page = await submit(root, page, code=code_of(secret[1], time.time() + 30))
            assert (page.url.path, page.status_code) == ("/admin/", 200)
            assert (await root.get("/api/v1/tasks")).status_code == 200
            for place in sorted(STRANGERS):
                page = await root.get(f"/{place}", follow_redirects=False)
                assert page.status_code in {200, 302, 401}, place
                assert inline(page.text) == []
            page = await root.get("/accounts/2fa/totp/deactivate/")
            page = await submit(root, page, password=PASSWORD)
            page = await submit(root, page)  # it stays: the last lines are asked for it
            assert page.url.path == "/accounts/2fa/totp/deactivate/"
        async with browser(url) as guesser:
            page = await by_password(guesser)
            for status in (200, 200, 429):
                assert (await submit(guesser, page, code="000000")).status_code == status
            again = await submit(guesser, page, code=code_of(secret[1], time.time() + 30))
            assert "Too many" in again.text
            assert (await guesser.get("/admin/")).url.path == "/accounts/2fa/authenticate/"

    async def test_wrong_passwords_have_to_wait_as_ever(self, start: Start) -> None:
        url = await asyncio.to_thread(start, **EXTRA, A2A_LOGIN_FAILURES="2")
        async with browser(url) as guesser:
            for status in (200, 429):
                assert (await by_password(guesser, "guess")).status_code == status
            assert (await by_password(guesser)).status_code == 429


def test_a_wrong_word_does_not_switch_it_off(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="A2A_ADMIN_MFA must be empty or required"):
        manage({"VAR_DIR": str(tmp_path), "A2A_ADMIN_MFA": "1"}, "check")


PATTERNS = """
from django.urls import get_resolver
from tests.integration.access.test_routes import patterns
print("\\n".join(set(patterns(get_resolver()))))
"""


def test_every_route_it_brings_is_named_here(tmp_path: Path) -> None:
    own = {"VAR_DIR": str(tmp_path), **EXTRA}
    found = set(manage(own, "shell", "--no-imports", "-c", PATTERNS).splitlines())
    tables = {table + page for table in TABLES for page in STOCK}
    assert found - known() == ADDED | tables


def test_without_it_nothing_of_it_is_imported() -> None:
    loaded = "import django, sys; django.setup(); import a2a_project.asgi; print([m for m in sys.modules if 'allauth' in m or m.startswith('a2a_project.sign_in')])"
    done = subprocess.run(  # noqa: S603 - words of the test
        [sys.executable, "-c", loaded],
        env=backend.children(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
