"""What `/metrics` has of requests over every binding: how many, with which outcome, how long, and the open streams."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client import REGISTRY

from tests.support.bindings.client import Client
from tests.support.bindings.peers import Fault, Peer, message
from tests.support.bindings.puppet import Puppet

pytestmark = pytest.mark.django_db


def samples(name: str) -> Counter[tuple[str, ...]]:
    """The samples of that name, by the values of their labels."""
    return Counter(
        {
            tuple(sample.labels.values()): sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
            if sample.name == name
        }
    )


class TestARequest:
    async def test_counts_once_by_operation_dialect_binding_and_outcome(self, peer: Peer) -> None:
        counted, timed = samples("a2a_requests_total"), samples("a2a_request_seconds_count")
        await peer.send("echo hi")
        with pytest.raises(Fault):
            await peer.call("GetTask", {"id": "of-nobody"})
        with pytest.raises(Fault):
            await peer.send(parts=[])
        binding = peer.name
        assert samples("a2a_requests_total") - counted == {
            ("SendMessage", "v10", binding, "ok"): 1,
            ("GetTask", "v10", binding, "TaskNotFound"): 1,
            ("SendMessage", "v10", binding, "InvalidParams"): 1,
        }
        assert samples("a2a_request_seconds_count") - timed == {
            ("SendMessage", binding): 2,
            ("GetTask", binding): 1,
        }

    @pytest.mark.usefixtures("host")
    async def test_gives_no_label_that_a_client_invents(self, client: Client) -> None:
        before = samples("a2a_requests_total")
        body = '{"jsonrpc": "2.0", "id": 1, "method": "Invented", "params": {}}'
        for version in ("1.0", "99.9"):
            await client.ask("POST", "/agents/demo/", body.encode(), {"a2a-version": version})
        await client.ask("POST", "/agents/demo/message:invent", b"{}", {"a2a-version": "1.0"})
        found = samples("a2a_requests_total") - before
        assert {labels[0] for labels in found} == {"unknown"}
        assert {labels[3] for labels in found} == {"MethodNotFound", "VersionNotSupported"}
        assert found.total() == 3

    async def test_with_a_stream_counts_when_its_answer_begins(
        self, peer: Peer, puppet: Puppet
    ) -> None:
        binding, streaming = peer.name, peer.at("/agents/puppet")
        before, first = samples("a2a_requests_total"), samples("a2a_first_event_seconds_count")
        open_streams = samples("a2a_streams_open")
        async with streaming.stream("SendStreamingMessage", message()) as stream:
            hand = await puppet.hand()
            assert samples("a2a_requests_total") - before == {
                ("SendStreamingMessage", "v10", binding, "ok"): 1
            }
            assert samples("a2a_streams_open") - open_streams == {(binding,): 1}
            hand.end()
            await streaming.items(stream)
        assert samples("a2a_streams_open") == open_streams
        assert samples("a2a_first_event_seconds_count") - first == {("puppet",): 1}
