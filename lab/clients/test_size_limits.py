"""The limits of published clients that large tasks meet, with what lifts them (docs/reference/known-clients.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from a2a.client import ClientConfig, create_client
from a2a.helpers import new_text_message
from a2a.types import Role, SendMessageRequest

from tests.journeys.hosts import Host, host
from tests.journeys.sdk import said

pytestmark = pytest.mark.timeout(300)
TEXT = "echo " + "x" * 3_000_000
LIMIT = "grpc.max_receive_message_length"


@pytest.fixture(scope="module")
def site(emptied: None) -> Iterator[Host]:
    """A host with gRPC."""
    with host(grpc=True) as made:
        yield made


async def echo(site: Host, *options: tuple[str, Any]) -> str:
    """The artifact of a task of six megabytes over gRPC: the question, and the same again as the answer."""

    def channel(url: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(urlsplit(url).netloc, options=options)

    config = ClientConfig(
        streaming=False, supported_protocol_bindings=["GRPC"], grpc_channel_factory=channel
    )
    message = new_text_message(TEXT, role=Role.ROLE_USER)
    async with await create_client(site.here, client_config=config) as client:
        (answer,) = [e async for e in client.send_message(SendMessageRequest(message=message))]
    return said(*answer.task.artifacts)


async def test_a2a_sdk_1_3_0_takes_four_mebibytes_over_grpc_unless_its_channel_takes_more(
    site: Host,
) -> None:
    with pytest.raises(Exception, match="larger than max"):
        await echo(site)
    assert await echo(site, (LIMIT, -1)) == TEXT.removeprefix("echo ")
