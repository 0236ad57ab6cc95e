"""A certificate authority of a test, and what it issues, as files.

The certificates have what OpenSSL's strict checks ask for (`ssl.VERIFY_X509_STRICT`, the default from Python 3.13 on).
"""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]

NAME = "authority"


class Authority:
    """Vouches for servers."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        #: Its own certificate.
        self.path = folder / f"{NAME}.pem"
        usage = dict.fromkeys(
            (
                *("digital_signature", "content_commitment", "key_encipherment", "crl_sign"),
                *("data_encipherment", "key_agreement", "encipher_only", "decipher_only"),
            ),
            False,
        )
        made = (
            self._builder(NAME, self._key, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(key_cert_sign=True, **usage), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(made.public_bytes(Encoding.PEM))

    def issue(
        self, name: str, host: str = "localhost", *, days: int = 1, trusted: bool = True
    ) -> tuple[Path, Path]:
        """A certificate and its key: for this host, until so many days from now, signed by itself if not `trusted`."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer = self._key if trusted else key
        made = (
            self._builder(name, key, signer, days)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(signer, hashes.SHA256())
        )
        chain, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        chain.write_bytes(made.public_bytes(Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )
        return chain, secret

    def _builder(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        signer: ec.EllipticCurvePrivateKey,
        days: int = 1,
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        issuer = NAME if signer is self._key else name
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        signers = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(own, critical=False)
            .add_extension(signers, critical=False)
        )
