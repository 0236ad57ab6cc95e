"""What each dialect's clients say and hear, byte for byte: the transcripts in `golden/`, played."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.dialects.transcript import Conversation, Stage, conversations, play

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("conversation", conversations(), ids=str)
async def test_the_conversation_goes_as_written(
    conversation: Conversation, stage: Stage, settings: Settings
) -> None:
    for name, value in conversation.settings.items():
        setattr(settings, name, value)
    await play(conversation, stage)
