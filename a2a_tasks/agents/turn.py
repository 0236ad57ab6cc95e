"""A turn: everything an agent gets to know about one message, and the words it may answer with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from secrets import token_hex
from typing import Any

from a2a_tasks.agents.content import Content, parts
from a2a_tasks.agents.emission import Chunk, Reply, Status
from a2a_tasks.agents.faults import AgentError
from a2a_tasks.agents.files import Files
from a2a_tasks.agents.later import Later
from a2a_tasks.agents.mistakes import Unused
from a2a_tasks.agents.secrets import Secrets, asked_for
from a2a_tasks.agents.steps import Journal, Sleep, Step
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.values import UNSET, Message, Part, Task, TaskState

__all__ = ["AgentError", "ArtifactWriter", "Later", "Turn"]


class ArtifactWriter:
    """An artifact written in pieces: `yield page.write("...")`, and `last=True` with the last one."""

    def __init__(self, artifact_id: str, unused: Unused, **about: Any) -> None:
        self.artifact_id, self._about, self._begun = artifact_id, about, False
        self._unused = unused

    def write(self, *content: Content, last: bool = False) -> Chunk:
        """A piece, appended to what was written before."""
        append, self._begun = self._begun, True
        about = {} if append else self._about
        piece = Chunk(
            artifact_id=self.artifact_id, parts=parts(content), append=append, last=last, **about
        )
        return self._unused.watch(piece, "yield page.write(...)")


class Turn:
    """One message to answer. The methods make values to be yielded (or returned); they do nothing themselves."""

    def __init__(  # noqa: PLR0913 - a turn is what it knows
        self,
        *,
        message: Message,
        task_id: str,
        context_id: str,
        caller: Caller,
        history: Later[list[Message]],
        references: Later[list[Task]],
        memory: dict[str, Any],
        attempt: int = 1,
        accepted_output_modes: tuple[str, ...] = (),
        metadata: Mapping[str, Any] | None = None,
        extensions: tuple[str, ...] = (),
        by_operator: bool = False,
        journal: Journal | None = None,
        files: Files | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        #: The message to answer.
        self.message = message
        self.task_id, self.context_id = task_id, context_id
        #: Who asks (tenant, principal, scopes).
        self.caller = caller
        #: The task's messages so far, this one included, oldest first.
        self.history = history
        #: The tasks the message refers to, as far as the caller may see them.
        self.references = references
        #: A small JSON object kept between the turns of a task; change it in place.
        self.memory = memory
        #: 1, or more if the process of an earlier attempt died.
        self.attempt = attempt
        #: Media types the client would like, in its order; empty = no wish.
        self.accepted_output_modes = accepted_output_modes
        #: The request's own metadata.
        self.metadata = dict(metadata or {})
        #: URIs of the extensions in force.
        self.extensions = extensions
        #: Has an operator of the host given this message, in the caller's place?
        self.by_operator = by_operator
        self._cancelled = False
        self._journal = journal or Journal()
        self._files = files or Files()
        self._secrets = secrets or Secrets()
        #: What the methods below made, until it is yielded or awaited.
        self._unused = Unused()
        #: The generator that said the last word; its `file:line` where it runs in another process.
        self._speaker: Any = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the message."""
        return self.message.parts

    @property
    def text(self) -> str:
        """The text of the message: its text parts, joined by line breaks."""
        return "\n".join(part.text for part in self.parts if part.text is not UNSET)

    @property
    def cancelled(self) -> bool:
        """Is nobody waiting any more? Synchronous agents look here between steps; async ones are cancelled."""
        return self._cancelled

    def _stop(self) -> None:
        """Tell the agent that nobody waits any more, also where it waits for a step in a thread."""
        self._cancelled = True
        self._journal.stop()

    def step(self, name: str, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Step:
        """Do this once in the turn, however often its process dies: `await turn.step("pay", pay, 7)`.

        In a synchronous agent `turn.step(...).now()`. What `work` returns is kept before it is given, and given again
        without calling `work` if the turn is begun anew. Raises ValueError for a name used already in this turn and
        TypeError for a result that JSON cannot say; what `work` raises is not kept.
        """
        work, used = partial(work, *args, **kwargs), self._unused.used
        step = Step(self._journal, self.history.loop, name, work, used)
        return self._unused.watch(step, "await turn.step(...)")

    def sleep(self, seconds: float, *, name: str = "sleep") -> Sleep:
        """Wait that long from the first time this is reached: `await turn.sleep(60)`, or `.now()` in a thread."""
        sleep = Sleep(self._journal, self.history.loop, name, seconds, self._unused.used)
        return self._unused.watch(sleep, "await turn.sleep(...)")

    def read(self, part: Part) -> Later[bytes]:
        """The bytes of a file that came with a message: `await turn.read(part)`, or `.now()` in a synchronous agent.

        Also of parts of `turn.history` and `turn.references`. Raises ValueError for a part that is no file, or a URL of
        somebody else's; FileUnavailable if the file is gone.
        """
        return Later(lambda: self._files.read(part), self.history.loop)

    def fetch(
        self, part: Part, *, most: int | None = None, seconds: float | None = None
    ) -> Later[bytes]:
        """The same, and of a part with a URL what is there: the host asks for it, if its address guard lets it go.

        At most `most` bytes within `seconds`, and no more than A2A_FETCH_BYTES and A2A_FETCH_SECONDS. Raises
        FileUnavailable, an AgentError whose text the client may read.
        """
        return Later(lambda: self._files.fetch(part, most, seconds), self.history.loop)

    def secret(self, name: str) -> Later[str | None]:
        """What was handed over under this name: `await turn.secret("GitHub token")`, or `.now()` in a synchronous agent.

        None if nothing was, for this turn: then ask by `turn.need_auth(..., hand_over=name)`. Each attempt of the turn can
        read it; when the turn is over it is wiped.
        """

        async def found() -> str | None:
            return (await self._secrets.handed()).get(name)

        return Later(found, self.history.loop)

    def require(self, *scopes: str) -> None:
        """Go on only if the caller has these scopes: `turn.require(*PAYING.scopes)`. Raises AgentError that names the missing."""
        missing = [scope for scope in scopes if scope not in self.caller.scopes]
        if missing:
            raise AgentError(f"The caller lacks the scope: {' '.join(missing)}")

    def wants(self, media_type: str) -> bool:
        """May an answer of this type be sent? (No wish means any.)"""
        kind = media_type.partition("/")[0]
        wished = {media_type, f"{kind}/*", "*/*"}
        return not self.accepted_output_modes or bool(wished & set(self.accepted_output_modes))

    def working(self, *content: Content) -> Status:
        """Say what is going on; the task is working."""
        said = Status(TaskState.WORKING, parts(content))
        return self._unused.watch(said, "yield turn.working(...)")

    def ask(self, *content: Content) -> Status:
        """Ask the client; the task waits for its next message, which starts a new turn."""
        said = Status(TaskState.INPUT_REQUIRED, parts(content))
        return self._unused.watch(said, "yield turn.ask(...)")

    def need_auth(self, *content: Content, hand_over: str | Sequence[str] = ()) -> Status:
        """Say which credential is needed and why; the next message starts a new turn.

        `hand_over`: names of secrets, for people: `"GitHub token"`. The host adds a link to a page on which they are handed
        over once, outside the conversation; then a new turn starts that has them (`turn.secret`). ValueError for
        names nobody can be asked by.
        """
        asked = asked_for(hand_over)
        said = Status(TaskState.AUTH_REQUIRED, parts(content), hand_over=asked)
        return self._unused.watch(said, "yield turn.need_auth(...)")

    def complete(self, *content: Content) -> Status:
        """End the task as done, with a closing word. (Coming to the end of `run` does so without one.)"""
        said = Status(TaskState.COMPLETED, parts(content))
        return self._unused.watch(said, "yield turn.complete(...)")

    def fail(self, *content: Content) -> Status:
        """End the task as failed, with a text for the client."""
        said = Status(TaskState.FAILED, parts(content))
        return self._unused.watch(said, "yield turn.fail(...)")

    def reject(self, *content: Content) -> Status:
        """Refuse the task."""
        said = Status(TaskState.REJECTED, parts(content))
        return self._unused.watch(said, "yield turn.reject(...)")

    def reply(self, *content: Content) -> Reply:
        """Answer with a direct Message and no task. The agent must declare `replies_directly`."""
        return self._unused.watch(Reply(parts(content)), "yield turn.reply(...)")

    def artifact(
        self,
        *content: Content,
        name: str | None = None,
        description: str | None = None,
        id: str | None = None,  # noqa: A002 - the protocol's word
        metadata: Mapping[str, Any] | None = None,
    ) -> Chunk:
        """A whole artifact."""
        artifact = Chunk(
            artifact_id=id or name or token_hex(8),
            parts=parts(content),
            last=True,
            name=name,
            description=description,
            metadata=metadata,
        )
        return self._unused.watch(artifact, "yield turn.artifact(...)")

    def stream(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        id: str | None = None,  # noqa: A002
        metadata: Mapping[str, Any] | None = None,
    ) -> ArtifactWriter:
        """An artifact to be written in pieces."""
        return ArtifactWriter(
            id or name or token_hex(8),
            self._unused,
            name=name,
            description=description,
            metadata=metadata,
        )
