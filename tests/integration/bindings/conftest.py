"""A host in the process of the test, and its clients."""

from tests.support.bindings.fixtures import client, host, http_peer, local, peer, puppet

__all__ = ["client", "host", "http_peer", "local", "peer", "puppet"]
