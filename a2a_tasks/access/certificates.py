"""Client certificates (mutual TLS) in the header of a proxy that verified them: RFC 9440, or percent-encoded PEM."""

from __future__ import annotations

import base64
import binascii
import hashlib
from urllib.parse import unquote

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from a2a_tasks.access.credentials import Identity
from a2a_tasks.access.errors import refuse
from a2a_tasks.access.identity_cache import shorten_principal
from a2a_tasks.agents.security import MUTUAL_TLS
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf

__all__ = ["thumbprint", "verify"]

SPIFFE = "spiffe://"


async def verify(text: str) -> Identity:
    """Return the identity of a certificate: its SPIFFE id, or else its subject. Raises WrongCredentials."""
    certificate = _certificate(text)
    name = _spiffe_id(certificate) or certificate.subject.rfc4514_string()
    if not name or not name.isprintable():
        raise refuse("a certificate without a name")
    scopes = frozenset(str(conf.MTLS_SCOPES).split())
    return Identity(Caller(principal=shorten_principal(f"cert:{name}"), scopes=scopes), MUTUAL_TLS)


def thumbprint(text: str) -> str:
    """Return the `x5t#S256` of a certificate (RFC 8705 §3.1). Raises WrongCredentials."""
    der = _certificate(text).public_bytes(Encoding.DER)
    return base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def _certificate(text: str) -> x509.Certificate:
    text = text.strip()
    try:
        if text.startswith(":") and text.endswith(":"):
            return x509.load_der_x509_certificate(base64.b64decode(text[1:-1], validate=True))
        return x509.load_pem_x509_certificate(unquote(text).encode())
    except (binascii.Error, ValueError):
        raise refuse("a certificate that cannot be read") from None


def _spiffe_id(certificate: x509.Certificate) -> str:
    """Return the single URI of a workload (SPIFFE X.509-SVID §2); empty = there is none."""
    try:
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return ""
    uris = named.value.get_values_for_type(x509.UniformResourceIdentifier)
    return uris[0] if len(uris) == 1 and uris[0].startswith(SPIFFE) else ""
