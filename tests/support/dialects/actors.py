"""The agents of the golden conversations: led word by word, and told apart by what their cards declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from a2a_tasks.agents import Extension
from tests.support.bindings.puppet import Puppet

__all__ = ["ACTORS"]


class Actor(Puppet, abstract=True):
    """Declares everything that is optional."""

    slug = "actor"
    name = "Actor"
    description = "Does as the transcript says."
    default_input_modes: ClassVar[Sequence[str]] = ("text/plain", "application/json", "image/png")
    default_output_modes = ("text/plain", "application/json", "image/png")
    push_notifications = True
    extensions: ClassVar[Sequence[Extension]] = ()  # type: ignore[assignment]  # the puppet's two say nothing here


class Speaker(Actor, abstract=True):
    """May answer with a direct Message."""

    slug = "speaker"
    replies_directly = True


class Plain(Actor, abstract=True):
    """Declares nothing that is optional, and takes text alone."""

    slug = "plain"
    default_input_modes = ("text/plain",)
    push_notifications = False
    streaming = False


class Exacting(Actor, abstract=True):
    """Requires an extension of its clients."""

    slug = "exacting"
    extensions = (Extension("urn:x:required", required=True),)


ACTORS: tuple[type[Puppet], ...] = (Actor, Speaker, Plain, Exacting)
