"""A certificate authority of a test, and what it issues, as files."""

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


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """Vouches for `localhost`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        #: Its own certificate.
        self.path = folder / "authority.pem"
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder("authority", self._key).add_extension(constraints, critical=True)
        self._write(self.path, made)

    def issue(self, name: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        chain, secret = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        self._write(chain, self._builder(name, key).add_extension(names, critical=False))
        secret.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )
        return chain, secret

    @staticmethod
    def _builder(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def _write(self, path: Path, made: x509.CertificateBuilder) -> None:
        path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
