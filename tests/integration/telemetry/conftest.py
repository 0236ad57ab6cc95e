"""A host in the process of the test, whose spans are kept."""

from tests.support.bindings.fixtures import client, host, http_peer, local, peer, puppet
from tests.support.spans import spans

__all__ = ["client", "host", "http_peer", "local", "peer", "puppet", "spans"]
