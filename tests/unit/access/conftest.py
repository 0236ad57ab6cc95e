"""Nobody is let in without credentials; an issuer that the host believes."""

from tests.support.access.fixtures import closed, issuer, local

__all__ = ["closed", "issuer", "local"]
