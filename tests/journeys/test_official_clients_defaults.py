"""The published a2a-sdk client as its own documents make it, without a word about timeouts: what its reader of lines expects."""

from __future__ import annotations

import pytest

from tests.journeys.hosts import Host
from tests.journeys.sdk import BINDINGS, official, said
from tests.support.rows import rows

SEPARATORS = {"NEL": "\x85", "LINE": "\u2028", "PARAGRAPH": "\u2029"}


@pytest.mark.parametrize("binding", BINDINGS)
class TestATextWithASeparatorOfLines:
    @rows("separator", list(SEPARATORS))
    async def test_comes_whole_in_a_stream_in_its_answer_and_in_a_later_subscription(
        self, site: Host, binding: str, separator: str
    ) -> None:
        text = f"one{SEPARATORS[separator]}two"
        async with official(site.here, binding) as client:
            events = await client.stream(f"echo {text}")
            pieces = [e.artifact_update.artifact for e in events if e.HasField("artifact_update")]
            assert said(*events[0].task.artifacts, *pieces) == text
            assert said(*(await client.send(f"echo {text}")).artifacts) == text
            asked = await client.send(f"ask {text}")
            following = client.subscription(asked.id)
            assert said((await anext(following)).task.status.message) == text
            await client.cancel(asked.id)
            assert [event async for event in following]
