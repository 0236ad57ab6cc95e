"""Bearer tokens: what is believed, and every way of being believed without right that is known."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import json
import logging
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jws
from joserfc.jwk import OctKey

from a2a_tasks.access import authentication, tokens
from a2a_tasks.access import issuer as issuer_keys
from a2a_tasks.access.authentication import Credentials, identify
from a2a_tasks.access.issuer import PublishedKey
from a2a_tasks.access.tokens import audience
from a2a_tasks.agents import registry
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.errors import Overloaded, Unauthenticated, WrongCredentials
from tests.support.access.certificates import as_in_rfc_9440, certificate, thumbprint
from tests.support.access.issuer import AUDIENCE, Issuer, Key, issuing, key, signed

ALGORITHMS = ("RS256", "PS256", "ES256", "Ed25519")


def part(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def by_hand(issuer: Issuer, head: Any, payload: Any) -> str:
    """A token that the issuer has truly signed (RS256), whatever is in it."""

    def segment(said: Any) -> str:
        text = said if isinstance(said, bytes) else json.dumps(said).encode()
        return base64.urlsafe_b64encode(text).rstrip(b"=").decode()

    signed_text = f"{segment(head)}.{segment(payload)}"
    private: Any = issuer.keys[0].private_key
    signature = private.sign(signed_text.encode(), PKCS1v15(), SHA256())
    return f"{signed_text}.{segment(signature)}"


async def shown(token: str, slug: str = "demo", **more: str) -> Caller:
    """Who shows the token to an agent."""
    agent = registry.find(slug)
    assert agent is not None
    headers = {"authorization": f"Bearer {token}", **more}
    return await identify(Credentials(headers, "127.0.0.1"), agent)


async def refused(token: str, **more: str) -> str:
    """Check that the token opens nothing; what the client is told."""
    with pytest.raises(WrongCredentials) as found:
        await shown(token, **more)
    assert not token or token not in str(found.value)
    return str(found.value)


class TestAToken:
    async def test_says_who_calls(self, issuer: Issuer) -> None:
        caller = await shown(issuer.token(scope="a b", scp=["c", "d e"]))
        assert caller.principal == f"jwt:{issuer.url} alice"
        assert caller.scopes == {"a", "b", "c"}
        assert caller.tenant == ""

    @pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "Ed25519"])
    async def test_may_be_signed_by_any_algorithm_that_is_on(
        self, issuer: Issuer, settings: Any, alg: str
    ) -> None:
        settings.A2A_JWT_ALGORITHMS = "RS256,PS256,ES256,Ed25519"
        issuer.keys = [key(alg)]
        assert (await shown(issuer.token(alg=alg))).principal.endswith(" alice")

    async def test_may_be_typed_as_rfc_9068_has_it(self, issuer: Issuer) -> None:
        await shown(issuer.token(header={"typ": "at+JWT"}))

    async def test_may_name_several_audiences(self, issuer: Issuer) -> None:
        await shown(issuer.token(aud=["other", f"{AUDIENCE}/agents/demo"]))

    async def test_names_the_tenant_where_the_operator_says_how(
        self, issuer: Issuer, settings: Any
    ) -> None:
        settings.A2A_JWT_TENANT_CLAIM = "org"
        assert (await shown(issuer.token(org="acme"))).tenant == "acme"
        for wrong in (None, "", "a/b", 7, ["acme"]):
            await refused(issuer.token(org=wrong, jti=str(wrong)))

    async def test_of_a_long_subject_is_known_by_its_digest(self, issuer: Issuer) -> None:
        caller = await shown(issuer.token(sub="x" * 300))
        assert len(caller.principal) < 100
        assert caller != await shown(issuer.token(sub="x" * 301))

    async def test_is_taken_within_the_leeway(self, issuer: Issuer) -> None:
        now = int(time.time())
        await shown(issuer.token(exp=now - 20))
        await shown(issuer.token(nbf=now + 20, iat=now + 20))

    def test_of_this_moment_is_taken_without_leeway(self) -> None:
        """joserfc's own clock has no fractions: findings/joserfc_refuses_fractions_of_now.sh."""
        now = 1_800_000_000.75
        times = {"exp": now + 60, "iat": now, "nbf": now}
        claims = {"iss": "here", "sub": "alice", "aud": "demo", **times}
        rules = tokens.Rules("here", frozenset())
        assert tokens._check_claims(claims, rules, now).caller.principal


class TestATokenIsRefused:
    @pytest.mark.parametrize(
        "changed",
        [
            {"iss": "https://evil.example"},
            {"iss": None},
            {"aud": "https://other.example"},
            {"aud": f"{AUDIENCE}/agents/tables"},
            {"aud": AUDIENCE},
            {"aud": None},
            {"aud": 7},
            {"aud": []},
            {"aud": ""},
            {"exp": None},
            {"exp": "tomorrow"},
            {"exp": True},
            {"exp": -1},
            {"nbf": 2**40},
            {"nbf": "now"},
            {"iat": 2**40},
            {"sub": None},
            {"sub": ""},
            {"sub": " "},
            {"sub": 7},
            {"sub": "a\0b"},
            {"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}},
            {"cnf": "x"},
        ],
        ids=str,
    )
    async def test_for_what_it_says(self, issuer: Issuer, changed: dict[str, Any]) -> None:
        assert await refused(issuer.token(**changed)) == "The credentials are not valid" or (
            changed == {"exp": -1}
        )

    async def test_when_it_has_expired_and_is_told_so(self, issuer: Issuer) -> None:
        assert "expired" in await refused(issuer.token(exp=int(time.time()) - 31))

    async def test_with_no_algorithm(self, issuer: Issuer) -> None:
        for name in ("none", "None", "NONE", "nOnE", ""):
            head = part({"alg": name, "typ": "JWT", "kid": "one"})
            await refused(f"{head}.{part(issuer.claims())}.")
            good = issuer.token().rpartition(".")[2]
            await refused(f"{head}.{part(issuer.claims())}.{good}")

    @pytest.mark.parametrize("form", ["pem", "der", "n", "jwk"])
    async def test_signed_with_the_public_key_as_a_shared_secret(
        self, issuer: Issuer, form: str
    ) -> None:
        """Key confusion: HS256 with what everybody knows."""
        public = issuer.keys[0].public_key
        known = {
            "pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "der": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            "n": str(issuer.keys[0].as_dict(private=False)["n"]).encode(),
            "jwk": json.dumps(issuer.keys[0].as_dict(private=False)).encode(),
        }
        for kid in ("one", None):
            head = {"alg": "HS256", "typ": "JWT"} | ({"kid": kid} if kid else {})
            text = f"{part(head)}.{part(issuer.claims())}"
            mac = hmac.new(known[form], text.encode(), hashlib.sha256).digest()
            await refused(f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}")

    async def test_though_the_issuer_publishes_a_shared_secret(self, issuer: Issuer) -> None:
        secret = OctKey.generate_key(256, {"kid": "shared"})
        document = issuer.document("/keys")
        document["keys"].append(secret.as_dict(private=True))
        plain = issuer.document
        issuer.document = lambda path: document if path == "/keys" else plain(path)  # type: ignore[method-assign]
        head = {"alg": "HS256", "kid": "shared"}
        await refused(signed(head, issuer.claims(), secret))

    @pytest.mark.parametrize(
        "kid",
        [
            "",
            "two",
            "ONE",
            "../one",
            "../../dev/null",
            "one\0",
            "' or 1=1 --",
            "http://evil.example",
        ],
    )
    async def test_whose_kid_is_a_trick(self, issuer: Issuer, kid: str) -> None:
        await refused(issuer.token(header={"kid": kid}))

    @pytest.mark.parametrize("kid", [7, ["one"], {"one": 1}, True])
    async def test_whose_kid_is_no_text(self, issuer: Issuer, kid: Any) -> None:
        head = part({"alg": "RS256", "kid": kid})
        good = issuer.token().rpartition(".")[2]
        await refused(f"{head}.{part(issuer.claims())}.{good}")

    @pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
    async def test_whose_header_brings_its_own_key(self, issuer: Issuer, name: str) -> None:
        evil = key("RS256", "evil")
        async with issuing() as other:
            other.keys = [evil]
            brought = {
                "jku": other.jwks,
                "x5u": other.jwks,
                "jwk": evil.as_dict(private=False),
                "x5c": ["MIIB"],
            }
            for kid in ("one", "evil"):
                await refused(issuer.token(evil, {name: brought[name], "kid": kid}))
            assert other.asked == []

    async def test_by_a_key_of_somebody_else_under_the_right_name(self, issuer: Issuer) -> None:
        await refused(issuer.token(key("PS256", "one"), alg="RS256"))

    async def test_by_another_algorithm_than_the_key_is_for(self, issuer: Issuer) -> None:
        ours = key("RS256")
        document = issuer.document("/keys")
        document["keys"][0]["alg"] = "PS256"
        plain = issuer.document
        issuer.document = lambda path: document if path == "/keys" else plain(path)  # type: ignore[method-assign]
        await refused(issuer.token(ours, alg="RS256"))
        await shown(issuer.token(ours, alg="PS256"))

    async def test_by_an_algorithm_that_is_off(self, issuer: Issuer, settings: Any) -> None:
        settings.A2A_JWT_ALGORITHMS = "ES256"
        await refused(issuer.token())

    async def test_by_a_key_that_is_too_short_or_not_for_signing(self, issuer: Issuer) -> None:
        issuer.keys = [key("weak", "weak")]
        await refused(issuer.token(key("weak", "weak")))

    @pytest.mark.parametrize("typ", ["dpop+jwt", "logout+jwt", "secevent+jwt", "JOSE"])
    async def test_that_was_made_for_another_purpose(self, issuer: Issuer, typ: str) -> None:
        await refused(issuer.token(header={"typ": typ}))

    async def test_with_a_critical_header_nobody_here_knows(self, issuer: Issuer) -> None:
        head = {"alg": "RS256", "kid": "one", "crit": ["http://x"], "http://x": 1}
        text = f"{part(head)}.{part(issuer.claims())}"
        await refused(f"{text}.{issuer.token().rpartition('.')[2]}")

    @pytest.mark.parametrize(
        "more",
        [
            {"crit": ["exp"], "exp": 2**40},
            {"crit": ["b64"], "b64": True},
            {"crit": ["alg"]},
            {"crit": []},
            {"crit": "b64"},
            {"crit": [["b64"]]},
            {"crit": None},
            {"b64": False},
            {"b64": True},
            {"alg": ["RS256"]},
            {"alg": {"a": 1}},
            {"alg": 7},
            {"alg": None},
            {"alg": "rs256"},
            {"alg": "RS256 "},
            {"typ": ["JWT"]},
            {"typ": None},
            {"kid": "x" * 5000},
            {"kid": "../../../../dev/null"},
            {"kid": "one' union select 'x"},
            {"x": "\ud800"},
            {"x": 2**70},
            {"x": float("nan")},
        ],
        ids=str,
    )
    async def test_by_the_issuer_itself_with_a_header_nobody_has_to_understand(
        self, issuer: Issuer, more: dict[str, Any]
    ) -> None:
        """Each is truly signed: it is the header that is refused."""
        await refused(by_hand(issuer, {"alg": "RS256", "kid": "one", **more}, issuer.claims()))

    @pytest.mark.parametrize(
        "head",
        [
            b'{"alg":"RS256","kid":"one","x":' + b"[" * 2500 + b"]" * 2500 + b"}",
            b'{"alg":"RS256","kid":"one","x":' + b'{"x":' * 500 + b"1" + b"}" * 501,
            b'{"alg":"none","kid":"one","alg":"RS256"}',
            b'{"alg":"RS256","kid":"two","kid":"one"}',
            b'\xef\xbb\xbf{"alg":"RS256","kid":"one"}',
            '{"alg":"RS256","kid":"one"}'.encode("utf-16"),
            b'["alg","RS256"]',
            b'"RS256"',
            b"null",
            b"\xff\xfe",
            b"9" * 5000,
        ],
        ids=lambda head: repr(head[:40]),
    )
    async def test_by_the_issuer_itself_whose_header_is_none(
        self, issuer: Issuer, head: bytes
    ) -> None:
        await refused(by_hand(issuer, head, issuer.claims()))

    async def test_and_one_made_by_hand_is_as_good_as_any(self, issuer: Issuer) -> None:
        """Or the tests above would prove nothing."""
        await shown(by_hand(issuer, {"alg": "RS256", "kid": "one", "x": [[1]]}, issuer.claims()))

    async def test_that_is_in_another_token(self, issuer: Issuer) -> None:
        """Nested (RFC 7519 §5.2): a reader who unpacks one asks whose word the inner one is."""
        inner = issuer.token()
        for typ in ({"cty": "JWT"}, {}):
            head = {"alg": "RS256", "kid": "one", **typ}
            await refused(by_hand(issuer, head, inner.encode()))
            await refused(by_hand(issuer, head, json.dumps(inner).encode()))
        await refused(f"{inner}.{inner}")

    async def test_that_is_encrypted_or_written_as_json(self, issuer: Issuer) -> None:
        head, claims, signature = issuer.token().split(".")
        jwe = part({"alg": "dir", "enc": "A256GCM"})
        written = {"payload": claims, "protected": head, "signature": signature}
        for token in (f"{jwe}..AAAA.AAAA.AAAA", json.dumps(written), part(written)):
            await refused(token)

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b"null",
            b"[]",
            b'"x"',
            b"{",
            b"\xff",
            b'{"sub":"root","a":' + b"[" * 3000 + b"]" * 3000 + b"}",
            b'{"exp":' + b"9" * 4000 + b"}",
        ],
        ids=lambda payload: repr(payload[:20]),
    )
    async def test_by_the_issuer_itself_that_says_nothing(
        self, issuer: Issuer, payload: bytes
    ) -> None:
        await refused(by_hand(issuer, {"alg": "RS256", "kid": "one"}, payload))

    async def test_signed_with_nothing_on_a_curve(self, issuer: Issuer) -> None:
        """r = s = 0 has been a signature of everything, elsewhere; and DER is none here."""
        issuer.keys = [key("ES256")]
        head, claims, signature = issuer.token(alg="ES256").split(".")
        await shown(f"{head}.{claims}.{signature}")
        for forged in (b"\0" * 64, b"", b"\xff" * 64, b"0\x06\x02\x01\x00\x02\x01\x00", b"\0" * 63):
            text = base64.urlsafe_b64encode(forged).rstrip(b"=").decode()
            await refused(f"{head}.{claims}.{text}")

    async def test_larger_than_any_token_is(self, issuer: Issuer) -> None:
        await shown(issuer.token(groups=["g" * 100] * 80))
        await refused(issuer.token(groups=["g" * 100] * 200))
        await refused(issuer.token(header={"x": "y" * 8000}))

    async def test_under_a_name_that_two_keys_have(self, issuer: Issuer) -> None:
        ours = issuer.keys[0]
        issuer.keys = [ours, key("PS256", "one")]
        await refused(issuer.token(ours))

    async def test_with_any_bit_changed(self, issuer: Issuer) -> None:
        head, claims, signature = issuer.token().split(".")
        other = part(issuer.claims(sub="root"))
        for token in (
            f"{head}.{other}.{signature}",
            f"{head}.{claims}.{signature[:-8]}AAAAAAAA",
            f"{head}.{claims}.",
            f"{head}.{claims}",
            f"{claims}.{signature}",
            f"{head}.{claims}.{signature}.{signature}",
            f"{head}..{signature}",
            "",
            "..",
            "....",
            "x",
            "\xff.\xff.\xff",
            "a" * 20_000,
        ):
            await refused(token)

    async def test_that_says_a_claim_twice(self, issuer: Issuer) -> None:
        """What two readers read differently is read by none."""
        payload = json.dumps(issuer.claims())[:-1] + ', "sub": "root"}'
        head = {"alg": "RS256", "kid": "one"}
        await refused(jws.serialize_compact(head, payload, issuer.keys[0]))

    async def test_where_tokens_are_off(self) -> None:
        async with issuing() as nobody:
            nobody_asked = nobody.token()
            await refused(nobody_asked)
            assert nobody.asked == []

    async def test_where_nothing_says_what_they_must_be_made_out_to(
        self, issuer: Issuer, settings: Any
    ) -> None:
        settings.A2A_PUBLIC_URL = ""
        await refused(issuer.token(aud=""))
        await refused(issuer.token(aud="/agents/demo"))


class TestAudiences:
    def test_are_the_agents_own_urls_unless_the_operator_says_otherwise(
        self, settings: Any
    ) -> None:
        settings.A2A_PUBLIC_URL = "https://h/"
        assert (audience("demo"), audience(None)) == ("https://h/agents/demo", "https://h")
        settings.A2A_JWT_AUDIENCE = "api://a2a/{agent}"
        assert (audience("demo"), audience(None)) == ("api://a2a/demo", "https://h")
        settings.A2A_JWT_AUDIENCE = "api://a2a"
        assert (audience("demo"), audience(None)) == ("api://a2a", "api://a2a")

    async def test_of_one_agent_open_no_other(self, issuer: Issuer) -> None:
        token = issuer.token()
        await shown(token, "demo")
        with pytest.raises(WrongCredentials):
            await shown(token, "tables")


class TestABoundToken:
    """RFC 8705 §3: it is worth nothing without its certificate."""

    async def test_opens_with_its_certificate_alone(self, issuer: Issuer, settings: Any) -> None:
        settings.A2A_MTLS_PEERS = "127.0.0.1"
        own, other = certificate("alice"), certificate("mallory")
        token = issuer.token(cnf={"x5t#S256": thumbprint(own)})
        caller = await shown(token, **{"client-cert": as_in_rfc_9440(own)})
        assert caller.principal.startswith("jwt:")
        await refused(token)
        await refused(token, **{"client-cert": as_in_rfc_9440(other)})
        await refused(token, **{"client-cert": "nonsense"})

    async def test_is_worth_nothing_where_no_proxy_is_listed(self, issuer: Issuer) -> None:
        own = certificate("alice")
        token = issuer.token(cnf={"x5t#S256": thumbprint(own)})
        await refused(token, **{"client-cert": as_in_rfc_9440(own)})


def _let_pass(seconds: float) -> None:
    """Let the keys be older by so many seconds."""
    keys = tokens._keys()
    keys._read -= seconds
    keys._tried -= seconds
    authentication.forget()


class TestTheIssuer:
    async def test_is_asked_once_for_all_tokens(self, issuer: Issuer) -> None:
        for n in range(5):
            await shown(issuer.token(jti=str(n)))
        assert len(issuer.asked) == 2

    async def test_is_found_without_discovery(self, issuer: Issuer, settings: Any) -> None:
        settings.A2A_JWT_JWKS_URL = issuer.jwks
        await shown(issuer.token())
        assert issuer.asked == ["/keys"]

    async def test_is_asked_again_for_a_new_key_but_not_for_every_made_up_one(
        self, issuer: Issuer
    ) -> None:
        await shown(issuer.token())
        new = key("RS256", "two")
        issuer.keys = [new, *issuer.keys]
        keys = tokens._keys()
        keys._tried -= 31  # half a minute later
        assert (await shown(issuer.token(new))).principal.endswith(" alice")
        assert issuer.asked_for_keys == 2
        for n in range(20):
            await refused(issuer.token(header={"kid": f"made up {n}"}))
        assert issuer.asked_for_keys == 2

    @pytest.mark.parametrize(("number", "served"), [(1_000, True), (10_000, False)])
    async def test_with_very_many_keys_costs_no_more_than_a_hundred(
        self, issuer: Issuer, number: int, served: bool
    ) -> None:
        """The first hundred are read of a document that may be read at all."""
        (ours,) = issuer.document("/keys")["keys"]
        small = {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}
        document = {"keys": [ours, *({**small, "kid": str(n)} for n in range(number))]}
        plain = issuer.document
        issuer.document = lambda path: document if path == "/keys" else plain(path)  # type: ignore[method-assign]
        if served:
            await shown(issuer.token())
            assert len(tokens._keys()._keys) <= 100
        else:
            with pytest.raises(Overloaded):
                await shown(issuer.token())

    @pytest.mark.parametrize("idle", [301, 3500, 7200])
    async def test_that_withdraws_a_key_is_believed(self, issuer: Issuer, idle: int) -> None:
        old = issuer.keys[0]
        await shown(issuer.token(old))
        issuer.keys = [key("RS256", "two")]
        _let_pass(idle)
        await refused(issuer.token(old, jti="the first after the pause"))
        assert issuer.asked_for_keys == 2

    async def test_that_was_away_long_ago_is_waited_for(self, issuer: Issuer) -> None:
        old = issuer.keys[0]
        await shown(issuer.token(old))
        issuer.status = "503 Away"
        _let_pass(301)
        await shown(issuer.token(old, jti="it is away"))
        issuer.status, issuer.keys = "200 OK", [key("RS256", "two")]
        _let_pass(301)
        many = [refused(issuer.token(old, jti=str(n))) for n in range(5)]
        await asyncio.gather(*many)

    async def test_is_asked_once_though_many_wait(self, issuer: Issuer) -> None:
        await shown(issuer.token())
        _let_pass(301)
        await asyncio.gather(*(shown(issuer.token(jti=str(n))) for n in range(50)))
        assert issuer.asked_for_keys == 2

    async def test_that_hangs_is_waited_for_once_and_so_many_seconds(
        self, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await shown(issuer.token())
        monkeypatch.setattr(issuer_keys, "WAIT_SECONDS", 0.3)
        issuer.hanging = True
        _let_pass(301)
        asked = len(issuer.asked)
        await asyncio.gather(*(shown(issuer.token(jti=str(n))) for n in range(20)))
        await asyncio.gather(*(shown(issuer.token(jti=f"later {n}")) for n in range(20)))
        assert len(issuer.asked) == asked + 1

    async def test_that_is_away_costs_nobody_who_is_known(self, issuer: Issuer) -> None:
        await shown(issuer.token())
        issuer.status = "503 Away"
        _let_pass(301)
        await shown(issuer.token(jti="2"))
        await shown(issuer.token(jti="3"))
        keys = tokens._keys()
        keys._tried -= 6  # it is asked again behind the back of the next request
        await shown(issuer.token(jti="4"))
        assert keys._asking is not None
        await keys._asking
        keys._read -= 3600
        with pytest.raises(Overloaded):
            await shown(issuer.token(jti="5"))

    async def test_that_never_answered_is_the_hosts_trouble_not_the_clients(
        self, issuer: Issuer
    ) -> None:
        issuer.status = "500 Oh"
        for n in range(3):
            with pytest.raises(Overloaded):
                await shown(issuer.token(jti=str(n)))
        assert len(issuer.asked) == 1

    @pytest.mark.parametrize(
        "discovery",
        [
            {"issuer": "https://evil.example"},
            {"jwks_uri": None},
            {"jwks_uri": "http://169.254.169.254/latest"},
            {"jwks_uri": "https://10.0.0.1/keys"},
            {"jwks_uri": "file:///etc/passwd"},
        ],
        ids=str,
    )
    async def test_whose_discovery_leads_astray_is_not_followed(
        self, issuer: Issuer, discovery: dict[str, Any]
    ) -> None:
        issuer.discovery = discovery
        with pytest.raises(Overloaded):
            await shown(issuer.token())
        assert issuer.asked_for_keys == 0


class TestAKey:
    @pytest.mark.parametrize("kind", ALGORITHMS)
    def test_signs_what_its_type_and_its_alg_allow(self, kind: str) -> None:
        of_its_type = {"RS256", "PS256"} if kind in {"RS256", "PS256"} else {kind}
        for named, algorithm in itertools.product([None, *ALGORITHMS], ALGORITHMS):
            published = PublishedKey("one", named, key(kind))
            allowed = algorithm in of_its_type and named in {None, algorithm}
            assert published.signs(algorithm) == allowed, (named, algorithm)


class TestTheGuardOfItsRequests:
    @pytest.mark.parametrize(
        ("issuer_url", "opens_loopback"),
        [
            ("http://localhost:9/", True),
            ("http://127.0.0.1:9/", True),
            ("https://[::1]:9/", True),
            ("https://8.8.8.8/", False),
            ("https://issuer.example/", False),
        ],
    )
    def test_opens_loopback_for_an_issuer_there_alone(
        self, issuer_url: str, *, opens_loopback: bool
    ) -> None:
        assert issuer_keys.guard(issuer_url, "").policy.loopback == opens_loopback


class TestTogether:
    async def test_many_with_one_token_are_verified_once(self, issuer: Issuer) -> None:
        token = issuer.token()
        found = await asyncio.gather(*(shown(token) for _ in range(50)))
        assert len(set(found)) == 1
        assert issuer.asked_for_keys == 1

    async def test_are_in_no_log(self, issuer: Issuer, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        good, bad = issuer.token(), issuer.token(exp=1)
        await shown(good)
        await refused(bad)
        for token in (good, bad):
            assert not any(part in caplog.text for part in token.split("."))

    async def test_unknown_schemes_of_authorization_are_none(self, issuer: Issuer) -> None:
        agent = registry.find("demo")
        for text in ("Digest x", "Bearer", "", "Basic eDp5", issuer.token(), "Bearer a,Bearer b"):
            with pytest.raises(Unauthenticated):
                await identify(Credentials({"authorization": text}), agent)

    async def test_case_of_the_scheme_means_nothing(self, issuer: Issuer) -> None:
        agent = registry.find("demo")
        for word in ("bearer", "BEARER", "Bearer "):
            await identify(Credentials({"authorization": f"{word} {issuer.token()}"}), agent)


def test_a_key_is_made_once() -> None:
    made: Key = key("RS256")
    assert made is key("RS256")
