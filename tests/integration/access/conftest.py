"""A host for known callers only, in the process of the test."""

from tests.support.access.fixtures import client, closed, guarded, host, issuer, local

__all__ = ["client", "closed", "guarded", "host", "issuer", "local"]
