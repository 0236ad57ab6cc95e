"""The base class of agents. docs/agents.md is its guide."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from django.core.checks import CheckMessage, Error, Warning  # noqa: A004 - Django's own name

from a2a_tasks.agents.author_errors import definition
from a2a_tasks.agents.emission import Content, Emission
from a2a_tasks.agents.skill import Extension, Provider, Skill
from a2a_tasks.agents.turn import Turn
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.media_types import admits
from a2a_tasks.rates import read_rate

__all__ = ["Agent", "unfit_skills"]

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MEDIA_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+(\s*;.*)?")
#: Attributes with a few possible values, and the numbers of their checks.
CHOICES = (
    ("after_crash", "a2a_tasks.E009", ("resume", "fail")),
    ("runs_in", "a2a_tasks.E020", ("", "process")),
    ("one_at_a_time", "a2a_tasks.E052", ("", "context")),
    ("when_version_is_gone", "a2a_tasks.E053", ("wait", "fail")),
    ("on_hangup", "a2a_tasks.E063", ("cancel", "go on")),
)
PUSH_EVENTS = ("all", "coalesced", "states")
SKILLS = 'skills = [Skill("id", "Name", "What it does", tags=["..."])]'
Yielded = Emission | Content
Answer = AsyncIterator[Yielded] | Iterator[Yielded] | Awaitable[Yielded | None] | Yielded | None


class Agent:
    """An agent: the contents of its card, and `run`, which answers one message.

    `run` may be an async generator, a coroutine function, a generator or a plain function. Synchronous ones run in a
    thread; with `runs_in = "process"`, each runs in a process of its own. It yields (or returns) text, parts, or values
    from the turn's methods.
    """

    #: Name of the agent in URLs; derived from the class name if empty.
    slug: ClassVar[str] = ""
    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    version: ClassVar[str] = "1.0.0"
    skills: ClassVar[Sequence[Skill]] = ()
    #: Media types of input and output; `*/*` and `text/*` are allowed.
    default_input_modes: ClassVar[Sequence[str]] = ("text/plain",)
    default_output_modes: ClassVar[Sequence[str]] = ("text/plain",)
    provider: ClassVar[Provider | None] = None
    documentation_url: ClassVar[str] = ""
    icon_url: ClassVar[str] = ""
    extensions: ClassVar[Sequence[Extension]] = ()
    #: True if clients may stream.
    streaming: ClassVar[bool] = True
    #: True if clients may register webhooks for their tasks.
    push_notifications: ClassVar[bool] = False
    #: Events for webhooks: "all", "coalesced" (consecutive pieces of an artifact as one event) or "states".
    push_events: ClassVar[str] = "coalesced"
    #: True if `run` may answer with a direct Message. The host then waits for its first value before it answers.
    replies_directly: ClassVar[bool] = False
    #: True if the card declares that tasks show the usage of models (`turn.usage`).
    reports_usage: ClassVar[bool] = False
    #: True if the card declares that streams show the calls of tools (`turn.tool_call`).
    reports_tools: ClassVar[bool] = False
    #: True if a second message with an id, to the same task or context, is a repetition of the first.
    idempotent_message_ids: ClassVar[bool] = False
    #: True if authenticated callers get a fuller card from `extended_card`.
    has_extended_card: ClassVar[bool] = False
    #: Required scopes of callers, all of them. If there are any, anonymous callers are refused.
    scopes: ClassVar[Sequence[str]] = ()
    #: Authentication schemes, of those that the host accepts: "bearer", "apiKey", "basic", "mutualTLS"; () = all.
    schemes: ClassVar[Sequence[str]] = ()
    #: Tasks that a caller sees: its "own", or those of its whole "tenant"; "" = the value of A2A_VISIBILITY.
    visibility: ClassVar[str] = ""
    #: Callers that may use it: all accepted ones ("open"), or those with a grant ("listed"); "" = as A2A_GRANTS.
    grants: ClassVar[str] = ""
    #: Rate limit of requests by all callers together, such as "20/s"; it replaces A2A_RATE_PER_AGENT.
    rate: ClassVar[str] = ""
    #: Request headers that `turn.headers` has, such as "x-user-id". They are stored with the run.
    forwarded_headers: ClassVar[Sequence[str]] = ()
    #: The queue whose workers run this agent.
    queue: ClassVar[str] = "agents"
    #: Place of `run`: "process" for work that keeps a core busy; "" = the event loop, or a thread if synchronous.
    runs_in: ClassVar[str] = ""
    #: Recovery after its process died: "resume" runs it again for the same message, "fail" fails the task.
    after_crash: ClassVar[str] = "resume"
    #: Runs that wait for each other: those of one conversation ("context"), in order of acceptance; "" = of one task.
    one_at_a_time: ClassVar[str] = ""
    #: Tasks of a version in an environment of its own, while no worker has this version: they "wait", or "fail".
    when_version_is_gone: ClassVar[str] = "wait"
    #: Its work for a client of MCP, OpenAI's API or AG-UI that closes the connection: "cancel" it, or "go on".
    on_hangup: ClassVar[str] = "cancel"
    #: The agents that it may call (`turn.call`), by their slugs; `"*"` = all that its caller may use.
    calls: ClassVar[Sequence[str]] = ()
    #: True if it may call itself, also by way of others; else a call that would close a circle is refused.
    recursive: ClassVar[bool] = False
    #: Longest time for `cancelled`, in seconds.
    cancel_seconds: ClassVar[float] = 2.0
    #: Set by `class Base(Agent, abstract=True)`: a base class of other agents that is not hosted itself.
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

    def cancelled(self, turn: Turn) -> Any:
        """Clean up after a task that was cancelled while it waited: for the client, for a time, for another task, for a slot.

        `turn` is that of the last message, and `turn.task` the task as it stands, which stays cancelled whatever happens
        here. It may be a coroutine function. It is called where `run` is, at most once, soon after the cancel; its errors
        are in the log of the run.
        """

    @property
    def _hears_of_cancels(self) -> bool:
        """True if the class has a `cancelled` of its own."""
        return type(self).cancelled is not Agent.cancelled

    def extended_card(self, card: Mapping[str, Any], caller: Caller) -> Mapping[str, Any] | None:
        """Return the card for an authenticated caller, made from the public card; None = there is none."""
        return None

    @property
    def synchronous(self) -> bool:
        """True if `run` needs a thread."""
        return not (inspect.isasyncgenfunction(self.run) or inspect.iscoroutinefunction(self.run))

    def accepts(self, media_type: str) -> bool:
        """Return whether this media type is among the input modes of the agent or of one of its skills."""
        modes = (mode for skill in self.skills for mode in skill.input_modes)
        return admits([*self.default_input_modes, *modes], media_type)

    def check(self) -> Iterable[CheckMessage]:
        """Yield the system checks of this agent; a subclass may add its own."""
        where = f"{type(self).__module__}.{type(self).__qualname__}"
        if not SLUG.fullmatch(self.slug):
            yield Error(
                f"Invalid slug {self.slug!r}: it must fit into a URL",
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
            return  # the further checks read the skills
        yield from self._check_skills(where)
        yield from self._check_modes(where)
        yield from self._check_push(where)
        for name, number, choices in CHOICES:
            if getattr(self, name) not in choices:
                yield Error(
                    f"{name} is {getattr(self, name)!r}",
                    hint=f"It is one of {', '.join(map(repr, choices))}.",
                    obj=where,
                    id=number,
                )
        try:
            read_rate(self.rate)
        except ValueError as fault:
            yield Error(f"rate: {fault}", obj=where, id="a2a_tasks.E047")
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
        if isinstance(self.calls, str) and self.calls != "*":
            hint = f'calls = ("{self.calls}",), or "*" for all.'
            yield Error("calls is a list of slugs", hint=hint, obj=where, id="a2a_tasks.E060")
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
    """Return the mistakes in the values of skills; empty = none."""
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
