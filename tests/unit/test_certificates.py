"""The certificates that tests make pass the checks that clients make, the strict ones of Python 3.13 included."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.support.bindings.authority import Authority


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Do a handshake in memory. Raises ssl.SSLError if a side refuses the other."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass


@pytest.mark.parametrize("trusted", [True, False])
def test_strict_clients_trust_what_the_authority_vouches_for(trusted: bool, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = ssl.create_default_context(cafile=str(authority.path))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.issue("server", trusted=trusted))
    if trusted:
        shake_hands(client, server)
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(client, server)
