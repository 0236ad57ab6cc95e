"""What each dialect's clients say and hear, byte for byte: the transcripts in `golden/`, played."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.dialects.transcript import Conversation, Stage, conversations, play
from tests.support.thorough import thorough

pytestmark = pytest.mark.django_db
#: Dialects whose code is that of another but for a few names: `make test` plays every third of their conversations.
TWINS = {"v00", "v02"}


@pytest.mark.parametrize(
    "conversation",
    [
        thorough(told) if told.dialect in TWINS and number % 3 else told
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
