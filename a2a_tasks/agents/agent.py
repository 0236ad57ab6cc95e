"""The class to subclass. docs/agents.md is its guide."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's own name

from a2a_tasks.agents.content import Content
from a2a_tasks.agents.emission import Emission
from a2a_tasks.agents.mistakes import definition
from a2a_tasks.agents.skill import Extension, Provider, Skill
from a2a_tasks.agents.turn import Turn
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.media_types import admits
from a2a_tasks.rates import read_rate

__all__ = ["Agent", "unfit_skills"]

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MEDIA_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+(\s*;.*)?")
AFTER_CRASH = ("resume", "fail")
RUNS_IN = ("", "process")
PUSH_EVENTS = ("all", "coalesced", "states")
SKILLS = 'skills = [Skill("id", "Name", "What it does", tags=["..."])]'
Yielded = Emission | Content
Answer = AsyncIterator[Yielded] | Iterator[Yielded] | Awaitable[Yielded | None] | Yielded | None


class Agent:
    """An agent: what its card says, and `run`, which answers one message.

    `run` may be an async generator, a coroutine function, a generator or a plain function; synchronous ones run in
    a thread, and any of them in a process of its own if it says so. What it yields (or returns) is text, parts, or values made by the turn's methods.
    """

    #: Names the agent in URLs; derived from the class name if empty.
    slug: ClassVar[str] = ""
    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    version: ClassVar[str] = "1.0.0"
    skills: ClassVar[Sequence[Skill]] = ()
    #: Media types taken and given; `*/*` and `text/*` are understood.
    default_input_modes: ClassVar[Sequence[str]] = ("text/plain",)
    default_output_modes: ClassVar[Sequence[str]] = ("text/plain",)
    provider: ClassVar[Provider | None] = None
    documentation_url: ClassVar[str] = ""
    icon_url: ClassVar[str] = ""
    extensions: ClassVar[Sequence[Extension]] = ()
    #: May clients stream?
    streaming: ClassVar[bool] = True
    #: May clients register webhooks? They are kept with their tasks; the host does not deliver to them yet.
    push_notifications: ClassVar[bool] = False
    #: What webhooks are told: "all" events, "coalesced" (pieces of an artifact that follow each other as one) or "states".
    push_events: ClassVar[str] = "coalesced"
    #: May `run` answer with a direct Message? The host then waits for its first word before it answers.
    replies_directly: ClassVar[bool] = False
    #: Is a message sent again, under the same id to the same task or context, the same message?
    idempotent_message_ids: ClassVar[bool] = False
    #: Does an authenticated caller get a fuller card from `extended_card`?
    has_extended_card: ClassVar[bool] = False
    #: Scopes a caller must have, all of them. With any, nobody is anonymous here.
    scopes: ClassVar[Sequence[str]] = ()
    #: Ways to show who one is, of those the host accepts: "bearer", "apiKey", "basic", "mutualTLS"; () = any of them.
    schemes: ClassVar[Sequence[str]] = ()
    #: Whose tasks a caller sees: its "own", or those of its whole "tenant"; "" = as A2A_VISIBILITY says.
    visibility: ClassVar[str] = ""
    #: Who may use it: whoever is let in ("open"), or those alone who were granted it ("listed"); "" = as A2A_GRANTS says.
    grants: ClassVar[str] = ""
    #: How often it may be asked by all callers together, as in A2A_RATE_PER_AGENT, which this replaces: "20/s".
    rate: ClassVar[str] = ""
    #: The queue whose workers run this agent.
    queue: ClassVar[str] = "agents"
    #: Where `run` is called: "process" for what keeps a core busy; "" = on the event loop, or in a thread if synchronous.
    runs_in: ClassVar[str] = ""
    #: When its process died: "resume" runs it again for the same message, "fail" fails the task, visibly.
    after_crash: ClassVar[str] = "resume"
    #: Set by `class Base(Agent, abstract=True)`: a base of others, hosted nowhere itself.
    abstract: ClassVar[bool] = True

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.abstract = abstract
        if not cls.__dict__.get("slug"):
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
            cls.slug = words.removesuffix("-agent")

    def run(self, turn: Turn) -> Answer:
        """Answer one message. Raise AgentError to fail with a text for the client."""
        raise NotImplementedError

    def extended_card(self, card: Mapping[str, Any], caller: Caller) -> Mapping[str, Any] | None:
        """The card for an authenticated caller, made from the public one; None = there is none after all."""
        return None

    @property
    def synchronous(self) -> bool:
        """Does `run` need a thread?"""
        return not (inspect.isasyncgenfunction(self.run) or inspect.iscoroutinefunction(self.run))

    def accepts(self, media_type: str) -> bool:
        """Is this media type among the input modes of the agent or of one of its skills?"""
        modes = (mode for skill in self.skills for mode in skill.input_modes)
        return admits([*self.default_input_modes, *modes], media_type)

    def check(self) -> Iterable[CheckMessage]:
        """System checks of this agent; extend it with your own."""
        where = f"{type(self).__module__}.{type(self).__qualname__}"
        if not SLUG.fullmatch(self.slug):
            yield Error(
                f"{self.slug!r} cannot be part of a URL",
                hint="slug: lower-case letters, digits and hyphens, at most 63.",
                obj=where,
                id="a2a_tasks.E002",
            )
        if not (self.name and self.description):
            yield Error("an agent needs a name and a description", obj=where, id="a2a_tasks.E003")
        if not self.skills:
            yield Error("the agent has no skills", hint=SKILLS, obj=where, id="a2a_tasks.E004")
        elif unfit := unfit_skills(self.skills):
            yield Error(f"skills: {unfit}", hint=SKILLS, obj=where, id="a2a_tasks.E045")
            return  # what follows reads them
        yield from self._check_skills(where)
        yield from self._check_modes(where)
        yield from self._check_push(where)
        if self.after_crash not in AFTER_CRASH:
            yield Error(
                f"after_crash is {self.after_crash!r}",
                hint=f"It is one of {', '.join(map(repr, AFTER_CRASH))}.",
                obj=where,
                id="a2a_tasks.E009",
            )
        if self.runs_in not in RUNS_IN:
            yield Error(
                f"runs_in is {self.runs_in!r}",
                hint=f"It is one of {', '.join(map(repr, RUNS_IN))}.",
                obj=where,
                id="a2a_tasks.E020",
            )
        try:
            read_rate(self.rate)
        except ValueError as fault:
            yield Error(f"rate: {fault}", obj=where, id="a2a_tasks.E041")
        if type(self).run is Agent.run:
            yield Error("the agent has no run method", obj=where, id="a2a_tasks.E007")
        elif not _takes_a_turn(self.run):
            yield Error(
                f"run cannot be called with a turn: {definition(self.run)}",
                hint="def run(self, turn)",
                obj=where,
                id="a2a_tasks.E046",
            )

    def _check_skills(self, where: str) -> Iterable[CheckMessage]:
        ids = [skill.id for skill in self.skills]
        if len(set(ids)) != len(ids):
            yield Error("two skills have the same id", obj=where, id="a2a_tasks.E005")
        for skill in self.skills:
            if not (skill.id and skill.name and skill.description and skill.tags):
                yield Warning(
                    f"skill {skill.id!r} lacks an id, name, description or tags",
                    hint="A2A 1.0 requires all four in a card.",
                    obj=where,
                    id="a2a_tasks.W001",
                )

    def _check_modes(self, where: str) -> Iterable[CheckMessage]:
        modes = [*self.default_input_modes, *self.default_output_modes]
        modes += [m for s in self.skills for m in (*s.input_modes, *s.output_modes)]
        for mode in modes:
            if not MEDIA_TYPE.fullmatch(mode):
                yield Error(
                    f"{mode!r} is not a media type",
                    hint='For example "text/plain".',
                    obj=where,
                    id="a2a_tasks.E006",
                )
        if not (self.default_input_modes and self.default_output_modes):
            yield Error(
                "default_input_modes and default_output_modes must not be empty",
                obj=where,
                id="a2a_tasks.E008",
            )

    def _check_push(self, where: str) -> Iterable[CheckMessage]:
        if self.push_events not in PUSH_EVENTS:
            yield Error(
                f"push_events is {self.push_events!r}",
                hint=f"It is one of {', '.join(map(repr, PUSH_EVENTS))}.",
                obj=where,
                id="a2a_tasks.E016",
            )


def unfit_skills(skills: Any) -> str:
    """What is wrong with them as values; empty = they are skills."""
    if isinstance(skills, Skill) or not isinstance(skills, Sequence):
        return f"a {type(skills).__name__} is no list of skills"
    for number, skill in enumerate(skills):
        if not isinstance(skill, Skill):
            return f"number {number} is a {type(skill).__name__}, no Skill"
    return ""


def _takes_a_turn(run: Any) -> bool:
    try:
        inspect.signature(run).bind(object())
    except TypeError:
        return False
    return True
