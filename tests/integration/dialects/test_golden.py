"""What each dialect's clients say and hear, byte for byte: the transcripts in `golden/`, played."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.dialects.transcript import Conversation, Stage, conversations, play
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db
#: Dialects whose code is that of another but for a few names, and older ones over HTTP+JSON, whose documents are those of
#: JSON-RPC: of so many of their conversations `make test` plays one.
SHARES = {"v00": 3, "v02": 3, "dr-rest": 2, "v02-rest": 2, "v03-rest": 2}


@pytest.mark.parametrize(
    "conversation",
    [
        thorough(told) if number % SHARES.get(told.dialect, 1) else told
        for number, told in enumerate(conversations())
    ],
    ids=str,
)
async def test_the_conversation_goes_as_written(
    conversation: Conversation, stage: Stage, settings: Settings
) -> None:
    for name, value in conversation.settings.items():
        setattr(settings, name, value)
    await play(conversation, stage)
