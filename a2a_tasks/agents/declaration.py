"""Declarations of agents as data, for processes that do not have their code, and for the manifest of an environment."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from django.core.checks import CheckMessage

from a2a_tasks.agents import forwarded_headers, security
from a2a_tasks.agents.agent import Agent, Answer
from a2a_tasks.agents.skill import Extension, Provider, Skill
from a2a_tasks.agents.turn import Turn

__all__ = [
    "AnnouncedAgent",
    "Declaration",
    "Manifest",
    "UnfitManifest",
    "declare",
    "digest",
    "name_queue",
    "read_declaration",
    "read_manifest",
    "sign",
]

#: The newest format of manifests that this code reads, and the one that it writes.
FORMAT = 1
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")
ENVIRONMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The longest name of a queue.
MAX_QUEUE_LENGTH = 64
#: The longest declaration in bytes, and the deepest nesting of a parameter of an extension.
MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
#: The longest text in `Manifest.host`.
MAX_HOST_LENGTH = 32
SIGNATURE = re.compile(r"([0-9a-f]{64})?")


class UnfitManifest(ValueError):
    """The announcement cannot be accepted. The text has the reason."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The attributes of an agent that its card and the host's rules need (`Agent` explains them)."""

    slug: str
    name: str
    description: str
    version: str
    skills: tuple[Skill, ...]
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    provider: Provider | None = None
    documentation_url: str = ""
    icon_url: str = ""
    extensions: tuple[Extension, ...] = ()
    streaming: bool = True
    push_notifications: bool = False
    push_events: str = "coalesced"
    replies_directly: bool = False
    reports_usage: bool = False
    reports_tools: bool = False
    idempotent_message_ids: bool = False
    scopes: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    visibility: str = ""
    grants: str = ""
    rate: str = ""
    forwarded_headers: tuple[str, ...] = ()
    runs_in: str = ""
    after_crash: str = "resume"
    one_at_a_time: str = ""
    when_version_is_gone: str = "wait"
    on_hangup: str = "cancel"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The agents of an environment, as `a2a-host manifest` writes them."""

    format: int
    #: The version of a2a-host that wrote it. A host of an older minor version refuses it.
    host: str
    environment: str
    agents: tuple[msgspec.Raw, ...]
    #: The signatures of the agents, in their order; empty = the environment has no key.
    signatures: tuple[str, ...] = ()


class AnnouncedAgent(Agent, abstract=True):
    """An agent whose code is in another environment; here it is what it has declared."""

    def __init__(self, declaration: Declaration, environment: str) -> None:
        for name in Declaration.__struct_fields__:
            setattr(self, name, getattr(declaration, name))
        self.environment = environment
        self.queue = name_queue(declaration.slug, declaration.version)  # type: ignore[misc]

    def run(self, turn: Turn) -> Answer:
        """Refuse: the workers of its queue have the code."""
        raise RuntimeError(f"The agent {self.slug} runs in the environment {self.environment}")


def name_queue(slug: str, version: str) -> str:
    """Return the queue of one version of an agent: only workers that have this version take from it."""
    return f"{slug}@{version}"


def declare(agent: Agent) -> Declaration:
    """Return what an agent declares. Raises UnfitManifest if the agent could not be hosted."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(Declaration):
        value = getattr(agent, field.name)
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        values[field.name] = tuple(value) if is_list else value
    try:
        made = msgspec.convert(values, Declaration)
    except msgspec.ValidationError as fault:
        raise UnfitManifest(f"{agent.slug}: {fault}") from None
    _refuse_unfit(made, [*agent.check(), *_check_access(made)])
    return made


def read_declaration(text: bytes) -> Declaration:
    """Return the declaration in this JSON. Raises UnfitManifest."""
    try:
        made = msgspec.json.decode(text, type=Declaration)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UnfitManifest(f"this is not the declaration of an agent: {fault}") from None
    _refuse_unfit(made, [*AnnouncedAgent(made, "").check(), *_check_access(made)])
    return made


def _check_access(made: Declaration) -> Iterable[CheckMessage]:
    agent = AnnouncedAgent(made, "")
    return [
        *security.check(agent),
        *security.check_visibility(agent),
        *forwarded_headers.check(agent),
    ]


def _refuse_unfit(made: Declaration, checks: Iterable[CheckMessage]) -> None:
    serious = [check for check in checks if check.is_serious()]
    if serious:
        raise UnfitManifest(f"{made.slug}: {serious[0].msg}")
    if not VERSION.fullmatch(made.version):
        raise UnfitManifest(
            f"{made.slug}: the version {made.version[:50]!r} must have 1 to 32 letters, digits, dots, hyphens, "
            "underscores or plus signs"
        )
    if len(name_queue(made.slug, made.version)) > MAX_QUEUE_LENGTH:
        raise UnfitManifest(
            f"{made.slug}: slug and version together have more than {MAX_QUEUE_LENGTH - 1} characters"
        )
    try:
        size = len(msgspec.json.encode(made))
    except (TypeError, ValueError, RecursionError) as fault:
        raise UnfitManifest(f"{made.slug}: {fault}") from None
    if size > MAX_BYTES:
        raise UnfitManifest(f"{made.slug}: its declaration has more than {MAX_BYTES} bytes")
    if any(_is_deeper(extension.params, MAX_DEPTH) for extension in made.extensions):
        raise UnfitManifest(f"{made.slug}: parameters of an extension are nested too deeply")


def _is_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return depth == 0 or any(_is_deeper(one, depth - 1) for one in inner)


def digest(text: bytes) -> str:
    """Return the identity of a declaration: equal texts have equal cards."""
    return hashlib.sha256(text).hexdigest()


def sign(key: str, environment: str, text: bytes) -> str:
    """Return the signature of a declaration by its environment; empty without a key."""
    if not key:
        return ""
    return hmac.new(key.encode(), f"{environment}\n".encode() + text, "sha256").hexdigest()


def read_manifest(text: bytes, *, host: str) -> Manifest:
    """Return the manifest in this JSON, for a host of this version. Raises UnfitManifest."""
    try:
        made = msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UnfitManifest(f"this is not a manifest of agents: {fault}") from None
    if len(made.host) > MAX_HOST_LENGTH or not _parse(made.host):
        raise UnfitManifest(f"{made.host[:50]!r} is not the version of a host")
    refuse_newer(made.host, host)
    if made.format != FORMAT:
        raise UnfitManifest(
            f"the format of the manifest is {made.format}, but this host reads {FORMAT}"
        )
    if not ENVIRONMENT.fullmatch(made.environment):
        raise UnfitManifest(f"{made.environment[:80]!r} is not the name of an environment")
    if not all(map(SIGNATURE.fullmatch, made.signatures)):
        raise UnfitManifest("each signature of the manifest must have 64 hexadecimal digits")
    return made


def refuse_newer(writer: str, host: str) -> None:
    """Raise UnfitManifest if the version of the writer is a newer minor version than that of this host."""
    if _parse(writer)[:2] > _parse(host)[:2]:
        needed = ".".join(map(str, _parse(writer)[:2]))
        raise UnfitManifest(f"it needs a2a-host {needed} or newer, and this host is {host}")


def _parse(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", version)[:3])
