"""A turn: the data about one message for its agent, and the methods that make its answers."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from hashlib import sha256
from secrets import token_hex
from typing import Any, TypeVar

from aiohttp import ClientSession
from django.utils.datastructures import CaseInsensitiveMapping

from a2a_tasks.agents.author_errors import Unused
from a2a_tasks.agents.calls import Call, CallAnswer, Gather, want
from a2a_tasks.agents.conversation import Conversation
from a2a_tasks.agents.emission import Chunk, Content, Reply, StatusUpdate, ToolEvent, data, parts
from a2a_tasks.agents.faults import AgentError
from a2a_tasks.agents.http import open_session
from a2a_tasks.agents.later import Later, is_running_here
from a2a_tasks.agents.mcp import McpTools, find_server
from a2a_tasks.agents.sources import Files, Secrets, check_names
from a2a_tasks.agents.steps import DurableStep, Journal
from a2a_tasks.agents.usage import CURRENCY, make_report
from a2a_tasks.agents.waits import Sleep, TaskWait
from a2a_tasks.caller import Caller
from a2a_tasks.protocol.forms import FORM, UnfitAnswer, find_fault, find_form, read_answer
from a2a_tasks.protocol.soundness import mend
from a2a_tasks.protocol.values import UNSET, Message, Part, Task, TaskState

__all__ = ["AgentError", "ArtifactWriter", "Later", "Turn"]

T = TypeVar("T")


class ArtifactWriter:
    """An artifact that is written in pieces: `yield page.write("...")`, with `last=True` for the last piece."""

    def __init__(self, artifact_id: str, unused: Unused, **about: Any) -> None:
        self.artifact_id, self._about, self._begun = artifact_id, about, False
        self._unused = unused

    def write(self, *content: Content, last: bool = False) -> Chunk:
        """Return a piece, which is appended to the earlier ones."""
        append, self._begun = self._begun, True
        about = {} if append else self._about
        piece = Chunk(
            artifact_id=self.artifact_id, parts=parts(content), append=append, last=last, **about
        )
        return self._unused.watch(piece, "yield page.write(...)")


def _later(value: T, loop: asyncio.AbstractEventLoop) -> Later[T]:
    async def load() -> T:
        return value

    return Later(load, loop)


class Turn:
    """One message to answer. The methods make values to yield (or return); they do nothing themselves."""

    def __init__(  # noqa: PLR0913 - a turn is a record of all these
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
        return_immediately: bool = False,
        history_length: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        extensions: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
        by_operator: bool = False,
        journal: Journal | None = None,
        files: Files | None = None,
        secrets: Secrets | None = None,
        task: Later[Task | None] | None = None,
        task_cancelled: Later[bool] | None = None,
        conversation: Conversation | None = None,
        seed: str = "",
    ) -> None:
        #: The message to answer.
        self.message = message
        self.task_id, self.context_id = task_id, context_id
        #: The caller (tenant, principal, scopes).
        self.caller = caller
        #: The task's messages so far, including this one, oldest first.
        self.history = history
        #: The tasks the message refers to, as far as the caller may see them.
        self.references = references
        #: The task as it stood before this message, with its artifacts; None in the first turn.
        self.task = task or _later(None, history.loop)
        #: True if the task was cancelled; a run may also be stopped to go on elsewhere.
        self.task_cancelled = task_cancelled or _later(False, history.loop)
        #: A small JSON object that is kept between the turns of a task; change it in place.
        self.memory = memory
        #: The number of this attempt: 1, or more if the process of an earlier attempt died.
        self.attempt = attempt
        #: Media types that the client prefers, in its order; empty = no preference.
        self.accepted_output_modes = accepted_output_modes
        #: True if the client does not wait for the answer to its send.
        self.return_immediately = return_immediately
        #: The most messages of the history that the client wants in the answer; None = all.
        self.history_length = history_length
        #: The request's own metadata.
        self.metadata = dict(metadata or {})
        #: URIs of the extensions in force.
        self.extensions = extensions
        #: The request's headers that the agent names in `forwarded_headers`; upper and lower case are the same.
        self.headers: Mapping[str, str] = CaseInsensitiveMapping(headers or {})
        #: True if an operator of the host sent this message, in the caller's place.
        self.by_operator = by_operator
        #: The source of the ids of streams without a name, which every attempt must continue under the same id.
        self._seed, self._unnamed = seed, 0
        self._cancelled = False
        self._journal = journal or Journal()
        self._files = files or Files()
        self._secrets = secrets or Secrets()
        self._session: ClientSession | None = None
        self._mcp: dict[str, McpTools] = {}
        #: Values from the methods below, until they are yielded or awaited.
        self._unused = Unused()
        #: The generator that yielded the last value; its `file:line` if it runs in another process.
        self._source: Any = None
        #: The conversation (the context) that joins tasks: values and lists that are kept, messages of all its tasks.
        self.conversation = conversation or Conversation()
        self.conversation.join(history.loop, self._unused)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the message."""
        return self.message.parts

    @property
    def text(self) -> str:
        """Return the text of the message: its text parts, joined by line breaks."""
        return "\n".join([part.text for part in self.message.parts if part.text is not UNSET])

    @property
    def cancelled(self) -> bool:
        """True if the turn was stopped. Synchronous agents check this between steps; async ones are cancelled."""
        return self._cancelled

    @property
    def http(self) -> ClientSession:
        """Return a session of aiohttp for calls to other servers: `async with turn.http.get(url) as answer: ...`

        Every call, redirects included, may reach only what A2A_FETCH_* allows; else it raises CallRefused, an
        aiohttp.ClientError. `read`, `text` and `json` of an answer are bounded by FETCH_BYTES and FETCH_SECONDS;
        its `content` can be read as it comes. The session ends with the turn. Raises RuntimeError in a synchronous agent.
        """
        if not is_running_here(self.history.loop):
            raise RuntimeError(
                "turn.http is for async agents; a synchronous one has turn.fetch(...).now(), or a client of its own"
            )
        if self._session is None:
            self._session = open_session()
        return self._session

    def mcp(self, server: str) -> McpTools:
        """Return the tools of an MCP server: `await turn.mcp("github").call_tool("create_issue", {"title": "x"})`.

        Operators declare servers and their credentials (A2A_MCP_SERVERS); calls pass the guard of `turn.http`. Raises
        AgentError if there is no such server for the tenant of the caller.
        """
        if server not in self._mcp:
            found = find_server(server, tenant=self.caller.tenant)
            self._mcp[server] = McpTools(found, self._journal, self.history.loop)
        return self._mcp[server]

    async def _close(self) -> None:
        """Close the connections of the agent."""
        if self._session is not None:
            await self._session.close()

    def _stop(self) -> None:
        """Tell the agent that the turn was stopped, also while it waits for a step in a thread."""
        self._cancelled = True
        self._journal.stop()

    def step(self, name: str, work: Callable[..., Any], *args: Any, **kwargs: Any) -> DurableStep:
        """Take a step once in the turn, even if its process dies: `await turn.step("pay", pay, 7)`.

        Synchronous agents write `turn.step(...).now()`. The result of `work` is stored before it is returned; a new
        attempt of the turn gets the stored result, without a call of `work`. Raises ValueError for a name that this
        turn has used already, and TypeError for a result that is not JSON; exceptions of `work` are not stored.
        """
        work, used = partial(work, *args, **kwargs), self._unused.note_use
        step = DurableStep(self._journal, self.history.loop, name, work, used)
        return self._unused.watch(step, "await turn.step(...)")

    def sleep(self, seconds: float | datetime.datetime, *, name: str = "sleep") -> Sleep:
        """Sleep; the seconds count from the call in the first attempt: `await turn.sleep(60)`, or `.now()` in a thread.

        `seconds` may also be the moment of waking, a datetime with a time zone. During a long sleep the run is parked: it
        holds no slot, and `run` is called again at the end of the sleep (docs/agents/steps.md).
        """
        sleep = Sleep(self._journal, self.history.loop, name, seconds, self._unused.note_use)
        return self._unused.watch(sleep, "await turn.sleep(...)")

    def wait_for(
        self, task_id: str, *, agent: str = "", seconds: float = 86_400, name: str = ""
    ) -> TaskWait:
        """Wait for another task of the caller: `state = await turn.wait_for(task_id)`, or `.now()` in a thread.

        Returns its TaskState when it has ended or asks its client, or after `seconds`. `agent`: the slug of
        its agent, if that is another one. A long wait parks the run as `sleep` does. Raises AgentError if the caller has
        no such task, and ValueError for the task of this turn.
        """
        if task_id == self.task_id and not agent:
            raise ValueError("a task cannot wait for itself")
        about = (self._journal, self.history.loop, name or f"wait for {task_id}"[:190], seconds)
        wait = TaskWait(agent, task_id, *about, self._unused.note_use)
        return self._unused.watch(wait, "await turn.wait_for(...)")

    def call(
        self,
        agent: str,
        *content: Content,
        name: str = "",
        to: CallAnswer | None = None,
        context: str = "",
        seconds: float = 86_400,
        questions: str = "relay",
        at_end: str = "cancel",
        metadata: Mapping[str, Any] | None = None,
    ) -> Call:
        """Call another agent of the host: `answer = await turn.call("billing", "Refund order 7")`, or `.now()` in a thread.

        Its task runs as the caller of this one, and is begun once, even if processes die. `to` is an answer to continue,
        `context` the name of a conversation with that agent which lasts. A question of the agent goes to the client, or
        with `questions="return"` is the answer. When this turn ends, or `seconds` are over, a task that goes on is
        cancelled, unless `at_end` is "leave". Returns a CallAnswer, whatever became of the task. Raises CallRefused if
        nothing was begun, and ValueError for a name that this turn has used already.
        """
        wanted = want(
            agent,
            content,
            to=to,
            name=name,
            context=context,
            seconds=seconds,
            questions=questions,
            at_end=at_end,
            metadata=metadata,
        )
        call = Call(self._journal, self.history.loop, wanted, self._unused.note_use)
        return self._unused.watch(call, "await turn.call(...)")

    def gather(self, *calls: Call) -> Gather:
        """Make several calls at once, and wait until all are answered: `a, b = await turn.gather(turn.call(...), turn.call(...))`."""
        gather = Gather(self._journal, self.history.loop, calls, self._unused.note_use)
        return self._unused.watch(gather, "await turn.gather(...)")

    def usage(
        self,
        *,
        model: str,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
        requests: int = 1,
        cost: float | Decimal | None = None,
        currency: str = CURRENCY,
    ) -> Later[None]:
        """Report what a model was used for, right after its answer: `await turn.usage(...)`, or `.now()` in a thread.

        The report is taken at once, also without `await`, and is stored before later steps and output, whatever becomes
        of the step in which it was made. `await` waits until it is stored. Without a `cost` the host finds it in its
        prices, if it can. Figures that cannot be true are not counted; the run's log names them.
        """
        spent = make_report(
            model,
            cost,
            currency,
            requests=requests,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            cache_write_tokens=cache_write_tokens,
        )
        if spent is not None:
            self._journal.report(spent)
        step = "" if spent is None else spent.step
        return Later(partial(self._journal.confirm, step), self.history.loop)

    def read(self, part: Part) -> Later[bytes]:
        """Return the bytes of a file in a message: `await turn.read(part)`, or `.now()` in a synchronous agent.

        The part may also be from `turn.history` or `turn.references`. Raises ValueError for a part that is no file, or
        a URL elsewhere; FileUnavailable if the file is gone.
        """
        return Later(lambda: self._files.read(part), self.history.loop)

    def fetch(
        self, part: Part, *, max_bytes: int | None = None, seconds: float | None = None
    ) -> Later[bytes]:
        """Return the bytes as `read` does, and also download the URL of a part, if the address guard allows it.

        A download is limited to `max_bytes` and `seconds`, and to FETCH_BYTES and FETCH_SECONDS. Raises
        FileUnavailable, an AgentError whose text the client may read.
        """
        return Later(lambda: self._files.fetch(part, max_bytes, seconds), self.history.loop)

    def secret(self, name: str) -> Later[str | None]:
        """Return the secret of this name: `await turn.secret("GitHub token")`, or `.now()` in a synchronous agent.

        None if it was not handed over for this turn: then yield `turn.need_auth(..., hand_over=name)`. Each attempt of
        the turn can read the secret; it is erased when the turn ends.
        """

        async def find_text() -> str | None:
            return (await self._secrets.read_handed()).get(name)

        return Later(find_text, self.history.loop)

    def require(self, *scopes: str) -> None:
        """Check that the caller has these scopes: `turn.require(*PAYING.scopes)`.

        Raises AgentError that names the missing ones.
        """
        missing = [scope for scope in scopes if scope not in self.caller.scopes]
        if missing:
            raise AgentError(f"The caller lacks the scope: {' '.join(missing)}")

    def wants(self, media_type: str) -> bool:
        """Return whether the client accepts this media type. Without a preference it accepts any."""
        kind = media_type.partition("/")[0]
        wished = {media_type, f"{kind}/*", "*/*"}
        return not self.accepted_output_modes or bool(wished & set(self.accepted_output_modes))

    def working(self, *content: Content, metadata: Mapping[str, Any] | None = None) -> StatusUpdate:
        """Report progress; the task is working."""
        status = StatusUpdate(TaskState.WORKING, parts(content), metadata)
        return self._unused.watch(status, "yield turn.working(...)")

    def tool_call(
        self,
        id: str,  # noqa: A002 - as in `artifact`
        name: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> ToolEvent:
        """Report the call of a tool, for operators, and for clients that activate the extension (`reports_tools`).

        The id is unique in the task: a second report under it, also by another attempt or turn, is dropped.
        """
        return self._tool_event("toolCall", id, {"name": name, "arguments": arguments or {}})

    def tool_result(self, id: str, content: Any = None, *, error: bool = False) -> ToolEvent:  # noqa: A002
        """Report the result of the call with this id, any JSON value; `error`: the tool failed."""
        return self._tool_event("toolResult", id, {"content": content, "error": error})

    def _tool_event(self, kind: str, id_: str, about: Mapping[str, Any]) -> ToolEvent:
        ought = f"yield turn.{'tool_call' if kind == 'toolCall' else 'tool_result'}(...)"
        return self._unused.watch(ToolEvent(kind, id_, about), ought, depth=3)

    def ask(
        self,
        *content: Content,
        form: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> StatusUpdate:
        """Ask the client; the task waits for its next message, which starts a new turn.

        `form`: the JSON Schema of an object, with a property for each question. The host refuses answers that do not
        fit; `turn.answer` has the one that does. Raises AgentError for a schema that cannot be a form.
        """
        said = parts(content)
        if form is not None:
            form = mend(form)
            if fault := find_fault(form):
                raise AgentError(f"The form of the agent's question is wrong: {fault}")
            said = (*said, data({"form": form}))
        extensions = () if form is None else (FORM,)
        status = StatusUpdate(TaskState.INPUT_REQUIRED, said, metadata, extensions=extensions)
        return self._unused.watch(status, "yield turn.ask(...)")

    @property
    def answer(self) -> Later[dict[str, Any] | None]:
        """Return the answer to the form of the question before: `await turn.answer`, or `turn.answer.now()`.

        None if that question had no form, or if the message was sent before the question.
        """

        async def find() -> dict[str, Any] | None:
            *earlier, message = await self.history
            form = find_form(earlier[-1]) if earlier else None
            if form is None:
                return None
            with contextlib.suppress(
                UnfitAnswer
            ):  # in a thread: to compare a large answer takes a while
                return await asyncio.to_thread(read_answer, form, message.parts)
            return None

        return Later(find, self.history.loop)

    def need_auth(
        self,
        *content: Content,
        hand_over: str | Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> StatusUpdate:
        """Ask for a credential, with the reason; the next message starts a new turn.

        `hand_over`: names of secrets as people read them: `"GitHub token"`. The host adds a link to a page that takes
        the secrets once, outside the conversation; then a new turn starts that can read them (`turn.secret`). Raises
        ValueError for blank, too long or repeated names, and for too many.
        """
        secrets = check_names(hand_over)
        status = StatusUpdate(TaskState.AUTH_REQUIRED, parts(content), metadata, secrets)
        return self._unused.watch(status, "yield turn.need_auth(...)")

    def complete(
        self, *content: Content, metadata: Mapping[str, Any] | None = None
    ) -> StatusUpdate:
        """Complete the task with a closing message; the end of `run` completes it without one."""
        status = StatusUpdate(TaskState.COMPLETED, parts(content), metadata)
        return self._unused.watch(status, "yield turn.complete(...)")

    def fail(self, *content: Content, metadata: Mapping[str, Any] | None = None) -> StatusUpdate:
        """Fail the task, with a text for the client."""
        status = StatusUpdate(TaskState.FAILED, parts(content), metadata)
        return self._unused.watch(status, "yield turn.fail(...)")

    def reject(self, *content: Content, metadata: Mapping[str, Any] | None = None) -> StatusUpdate:
        """Reject the task."""
        status = StatusUpdate(TaskState.REJECTED, parts(content), metadata)
        return self._unused.watch(status, "yield turn.reject(...)")

    def reply(self, *content: Content, metadata: Mapping[str, Any] | None = None) -> Reply:
        """Answer with a direct Message and no task. The agent must declare `replies_directly`."""
        return self._unused.watch(Reply(parts(content), metadata), "yield turn.reply(...)")

    def artifact(
        self,
        *content: Content,
        name: str | None = None,
        description: str | None = None,
        id: str | None = None,  # noqa: A002 - the name in the protocol
        metadata: Mapping[str, Any] | None = None,
        extensions: Sequence[str] = (),
    ) -> Chunk:
        """Return a whole artifact."""
        artifact = Chunk(
            artifact_id=id or name or self._name(),
            parts=parts(content),
            last=True,
            name=name,
            description=description,
            metadata=metadata,
            extensions=tuple(extensions),
        )
        return self._unused.watch(artifact, "yield turn.artifact(...)")

    def _name(self) -> str:
        """Return the id of the next artifact without a name. Each attempt gives it the same id, so that a later one replaces it."""
        self._unnamed += 1
        made = f"{self._seed}/{self._unnamed}" if self._seed else token_hex(8)
        return sha256(made.encode()).hexdigest()[:16]

    def stream(
        self,
        name: str | None = None,
        *,
        description: str | None = None,
        id: str | None = None,  # noqa: A002
        metadata: Mapping[str, Any] | None = None,
        extensions: Sequence[str] = (),
    ) -> ArtifactWriter:
        """Return a writer for an artifact in pieces."""
        return ArtifactWriter(
            id or name or self._name(),
            self._unused,
            name=name,
            description=description,
            metadata=metadata,
            extensions=tuple(extensions),
        )
