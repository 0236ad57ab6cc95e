"""Keys of cards: however they come, what is said of them is heeded, and nothing shows them."""

from __future__ import annotations

import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from a2a_tasks.signatures.keys import SEED, CardKey, p256, read_keys
from tests.support.signatures.given import EDWARDS, NIST, NOW, public

Private = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


def pem(
    key: Private,
    form: PrivateFormat = PrivateFormat.PKCS8,
    sealed: KeySerializationEncryption | None = None,
) -> str:
    """A private key as OpenSSL writes it."""
    return key.private_bytes(Encoding.PEM, form, sealed or NoEncryption()).decode()


def public_pem(key: Private) -> str:
    """The other half."""
    form = PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(Encoding.PEM, form).decode()


NIST_PEM, EDWARDS_PEM = (
    ec.generate_private_key(ec.SECP256R1()),
    ed25519.Ed25519PrivateKey.generate(),
)


def jwks(*keys: dict[str, object]) -> str:
    """As a text."""
    return json.dumps({"keys": keys})


class TestReading:
    def test_takes_a_jwk_set_in_its_order(self) -> None:
        text = jwks(EDWARDS.as_dict(private=True), NIST.as_dict(private=True))
        assert [key.kid for key in read_keys(text)] == [EDWARDS.kid, NIST.kid]
        assert all(key.signs(NOW) for key in read_keys(text))

    def test_takes_one_jwk(self) -> None:
        (key,) = read_keys(json.dumps(NIST.as_dict(private=True)))
        assert key.as_dict(private=True) == NIST.as_dict(private=True)

    @pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
    def test_takes_pem(self, form: PrivateFormat) -> None:
        found = read_keys("# two keys\n" + pem(NIST_PEM, form) + "\n" + pem(EDWARDS_PEM))
        assert [key.algorithm for key in found] == ["ES256", "EdDSA"]
        assert [key.kid for key in found] == [key.jwk.thumbprint() for key in found]

    def test_takes_public_keys_which_sign_nothing(self) -> None:
        of_pem, of_jwk = (*read_keys(public_pem(NIST_PEM)), *read_keys(jwks(*public(EDWARDS))))
        for key in (of_pem, of_jwk):
            assert key.current(NOW)
            assert not key.signs(NOW)

    def test_heeds_what_is_said_of_a_key(self) -> None:
        said = {**NIST.as_dict(private=True), "kid": "mine", "nbf": NOW, "exp": NOW + 10}
        (key,) = read_keys(jwks(said))
        assert key.kid == "mine"
        assert [key.signs(NOW + late) for late in (-1, 0, 9, 10)] == [False, True, True, False]
        assert [key.current(NOW + late) for late in (-1, 0, 9, 10)] == [True, True, True, False]
        assert (
            key.as_dict(private=False).items()
            >= {"nbf": NOW, "exp": NOW + 10, "kid": "mine"}.items()
        )

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("", "no key"),
            ("hush", "no key"),
            ("{", "not JSON"),
            ('{"keys": 3}', "not a JWK Set"),
            ('{"keys": ["hush"]}', "not a JWK Set"),
            ('{"keys": []}', "no key"),
            (jwks({"kty": "oct", "k": "hush"}), "key 1: neither EC nor OKP"),
            (jwks({"hush": "hush"}), "key 1 cannot be read"),
            (
                jwks({"kty": "EC", "crv": "P-256", "x": "hush", "y": "hush", "d": "hush"}),
                "key 1 cannot",
            ),
            (jwks({"kty": "OKP", "crv": "X25519", "x": "hush", "d": "hush"}), "key 1"),
            (
                jwks(NIST.as_dict(private=True), {**NIST.as_dict(private=True), "alg": "HS256"}),
                "key 2",
            ),
            (jwks({**NIST.as_dict(private=True), "use": "enc"}), "`use` is not"),
            (jwks({**NIST.as_dict(private=True), "exp": "hush"}), "seconds"),
            (jwks({**NIST.as_dict(private=True), "exp": True}), "seconds"),
            (jwks({**NIST.as_dict(private=True), "revoked": {}}), "revoked"),
            (jwks({**EDWARDS.as_dict(private=True), "x": "A" * 43}), "do not belong together"),
            (jwks({**NIST.as_dict(private=True), "x": "A" * 43}), "key 1 cannot be read"),
            (jwks({**NIST.as_dict(private=True), "kid": ["hush"]}), "kid"),
            (pem(ec.generate_private_key(ec.SECP384R1())), "P-256"),
            (pem(rsa.generate_private_key(65537, 2048)), "key 1 cannot be read"),
            (pem(NIST_PEM, sealed=BestAvailableEncryption(b"hush")), "key 1 cannot be read"),
            (
                "-----BEGIN PRIVATE KEY-----\nhush\n-----END PRIVATE KEY-----",
                "key 1 cannot be read",
            ),
        ],
    )
    def test_refuses_what_is_no_key_and_does_not_tell_it(self, text: str, why: str) -> None:
        with pytest.raises(ValueError, match=why) as caught:
            read_keys(text)
        told = str(caught.value)
        assert "hush" not in told
        assert str(NIST.as_dict(private=True)["d"]) not in told
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


class TestAKey:
    @pytest.mark.parametrize("key", [NIST, EDWARDS], ids=["ES256", "EdDSA"])
    def test_signs_the_same_alike(self, key: CardKey) -> None:
        (twin,) = read_keys(jwks(key.as_dict(private=True)))
        assert key.sign(b"x") == key.sign(b"x") == twin.sign(b"x")
        assert key.sign(b"x") != key.sign(b"y")
        assert len(key.sign(b"x")) == 64

    @pytest.mark.parametrize("key", [NIST, EDWARDS], ids=["ES256", "EdDSA"])
    def test_signs_what_others_verify(self, key: CardKey) -> None:
        known = jwt.PyJWK.from_dict(key.as_dict(private=False))
        assert known.Algorithm.verify(b"x", known.key, key.sign(b"x"))
        assert not known.Algorithm.verify(b"y", known.key, key.sign(b"x"))

    def test_is_not_shown(self) -> None:
        assert str(NIST.as_dict(private=True)["d"]) not in repr(NIST)
        assert "d" not in NIST.as_dict(private=False)

    def test_can_be_made_of_a_seed_always_the_same(self) -> None:
        one, two = p256(b"s" * SEED), p256(b"s" * SEED)
        assert one.thumbprint() == two.thumbprint() != p256(b"t" * SEED).thumbprint()

    def test_signs_as_rfc_6979_says(self) -> None:
        """Appendix A.2.5, with SHA-256: the message "sample"."""
        private = 0xC9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721
        key = ec.derive_private_key(private, ec.SECP256R1())
        (read,) = read_keys(pem(key))
        assert read.sign(b"sample").hex() == (
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
            "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
        )
