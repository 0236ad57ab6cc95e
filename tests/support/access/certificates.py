"""Certificates of clients, and the header in which a proxy sends one on."""

from __future__ import annotations

import base64
import datetime
import hashlib
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

__all__ = ["as_in_rfc_9440", "as_nginx_does", "certificate", "thumbprint"]


def certificate(name: str = "", *uris: str) -> x509.Certificate:
    """One that names this."""
    secret = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")]))
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    if uris:
        names = x509.SubjectAlternativeName(map(x509.UniformResourceIdentifier, uris))
        builder = builder.add_extension(names, critical=True)
    return builder.sign(secret, hashes.SHA256())


def as_in_rfc_9440(shown: x509.Certificate) -> str:
    """The header as the standard has it."""
    return f":{base64.b64encode(shown.public_bytes(Encoding.DER)).decode()}:"


def as_nginx_does(shown: x509.Certificate) -> str:
    """The header as `$ssl_client_escaped_cert` has it."""
    return quote(shown.public_bytes(Encoding.PEM).decode())


def thumbprint(shown: x509.Certificate) -> str:
    """`x5t#S256` (RFC 8705 §3.1)."""
    digest = hashlib.sha256(shown.public_bytes(Encoding.DER)).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
