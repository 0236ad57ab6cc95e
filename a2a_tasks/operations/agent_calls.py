"""Calls of agents by agents (`turn.call`): their rights, their limits, and their acceptance as messages of the caller."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import uuid
from collections.abc import Collection
from typing import Any

from a2a_tasks.access import grants, switch_cache
from a2a_tasks.agents import Agent, registry
from a2a_tasks.agents.faults import CallRefused
from a2a_tasks.agents.security import (
    API_KEY,
    BASIC,
    BEARER,
    MUTUAL_TLS,
    is_listed,
    list_accepted,
    open_to_anybody,
)
from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.conf import conf
from a2a_tasks.execution import calls, dispatch
from a2a_tasks.execution.sources import StoredFiles
from a2a_tasks.execution.turns import find_reach, request_of
from a2a_tasks.failpoints import failpoint
from a2a_tasks.operations.accept_message import accept, check
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import A2AError, InvalidParams, Overloaded, RateLimited, TaskEnded
from a2a_tasks.protocol.lifecycle import INTERRUPTED, TERMINAL, LogEvent
from a2a_tasks.protocol.operators import DELEGATION
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Role, TaskState
from a2a_tasks.store import delegations
from a2a_tasks.store.db import AGAIN_SECONDS, retry_until_answered, run_in_thread
from a2a_tasks.store.delegations import CallBegun, CallTree
from a2a_tasks.store.records import ClaimedRun
from a2a_tasks.store.tasks import read_positions
from a2a_tasks.streaming.stream import EventReader, EventsRemoved
from a2a_tasks.telemetry.run_counters import tree_depth

__all__ = ["OperatedCalls"]

#: Maximum number of runs whose place in a tree is remembered.
MAX_TREES = 1000
#: The schemes of the principals that credentials make.
SCHEMES = {"key": API_KEY, "jwt": BEARER, "user": BASIC, "cert": MUTUAL_TLS}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AgentCall(CallContext):
    """The context of a call: caller and tenant are those of the calling task."""

    owner_scope: OwnerScope

    def scope(self, tenant: str) -> OwnerScope:
        """Return the scope of the called task."""
        return self.owner_scope


class OperatedCalls(calls.AgentCalls):
    """The calls, by the operations that serve clients."""

    def __init__(self) -> None:
        #: The trees of the newest runs, by their tokens.
        self._trees: dict[str, CallTree] = {}

    async def _find_tree(self, run: ClaimedRun) -> CallTree:
        if run.token not in self._trees:
            looking = functools.partial(run_in_thread, delegations.find_tree, run)
            found = await retry_until_answered(looking, repeatable=True)
            if len(self._trees) >= MAX_TREES:
                self._trees.clear()
            self._trees[run.token] = found
        return self._trees[run.token]

    async def begin(self, run: ClaimedRun, wanted: WantedCall) -> str | float:
        """See `AgentCalls`."""
        await switch_cache.fresh()
        request = request_of(run)
        caller = Caller(
            principal=request.principal, tenant=request.tenant, scopes=frozenset(request.scopes)
        )
        agent = await _find_callee(run.scope.agent, wanted.agent, caller)
        tree = await self._find_tree(run)
        _check_path(tree, agent)
        call = AgentCall(
            agent=agent,
            caller=caller,
            owner_scope=find_reach(run, agent.slug),
            request_id=request.request_id,
            tree=tree,
        )
        try:
            return await _accept(run, wanted, call, tree)
        except (Overloaded, RateLimited) as fault:
            seconds = fault.metadata.get("retry_after")
            if isinstance(fault, RateLimited) and seconds is None:
                raise CallRefused(fault.message) from fault
            return float(seconds or AGAIN_SECONDS)
        except A2AError as fault:
            raise CallRefused(_describe(fault)) from fault

    async def follow(self, keys: Collection[int], asking: Collection[int], seconds: float) -> None:
        """See `AgentCalls`."""
        reading = functools.partial(run_in_thread, read_positions, keys)
        found = await retry_until_answered(reading, repeatable=True)
        ends = {key: TERMINAL | INTERRUPTED if key in asking else TERMINAL for key in found}
        following = [
            asyncio.ensure_future(_follow(key, last, ends[key]))
            for key, (state, last) in found.items()
            if state not in ends[key]
        ]
        if not following:
            return
        try:
            await asyncio.wait(following, timeout=max(0.0, seconds))
        finally:
            for one in following:
                one.cancel()
            await asyncio.gather(*following, return_exceptions=True)


async def _follow(task: int, after: int, ends: Collection[TaskState]) -> None:
    """Read the log of a task after an event, until it is in one of these states. It may have been in them before."""

    def is_end(event: LogEvent) -> bool:
        return event.state in ends

    reader = await EventReader.open(task, after=after, until=is_end)
    try:
        while not reader.done:
            await reader.next()
    except EventsRemoved:
        await asyncio.Event().wait()  # the caller looks again
    finally:
        await reader.close()


async def _find_callee(own: str, slug: str, caller: Caller) -> Agent:
    """Return the agent to call. Raises CallRefused, with the same words for all agents that the caller may not use."""
    calling = registry.find_own(own)
    allowed = calling.calls if calling else ()
    if "*" not in allowed and slug not in allowed:
        raise CallRefused(f"{own} does not call {slug}.")
    agent = registry.find(slug)
    if agent is None or not await _may_use(caller, agent):
        raise CallRefused(f"There is no agent {slug}.")
    return agent


async def _may_use(caller: Caller, agent: Agent) -> bool:
    """Return whether the caller could send this agent a message itself."""
    if caller.anonymous:
        if not open_to_anybody(agent):
            return False
    else:
        scheme = SCHEMES.get(caller.principal.partition(":")[0])
        if agent.schemes and scheme not in list_accepted(agent):
            return False
        if not set(agent.scopes) <= caller.scopes:
            return False
    return not is_listed(agent) or grants.GrantRight.USE in await grants.rights(caller, agent.slug)


def _check_path(tree: CallTree, agent: Agent) -> None:
    """Check that the call closes no circle, and is not too deep. Raises CallRefused."""
    path = " → ".join((*tree.path, agent.slug))
    if agent.slug in tree.path and not agent.recursive:
        raise CallRefused(f"The agents would call each other in a circle: {path}.")
    if len(tree.path) > int(conf.CALL_DEPTH):
        raise CallRefused(f"Agents call each other to a depth of {conf.CALL_DEPTH}: {path}.")


async def _accept(run: ClaimedRun, wanted: WantedCall, call: AgentCall, tree: CallTree) -> str:
    """Accept the call, and start its run if this process has a slot. Raises A2AError, LeaseLost, CallRefused."""
    wanted = dataclasses.replace(wanted, parts=await StoredFiles(run).inline(wanted.parts))
    companion = delegations.CallCompanion(run, wanted, tree)
    request = _make_request(run, wanted, call, tree)
    if not wanted.parts:
        raise InvalidParams.field("message.parts", "must not be empty")
    check(request, call)
    try:
        try:
            accepted = await accept(request, call, None, companion)
        except TaskEnded:  # it continues the conversation
            message = _make_request(run, wanted, call, tree, continues=False)
            accepted = await accept(message, call, None, companion)
    except CallBegun as begun:
        return str(begun.args[0])
    failpoint("call.accepted")
    tree_depth.observe(len(tree.path))
    if accepted.claimed_run is not None:
        dispatch.start_run(accepted.claimed_run)
    return companion.result


def _make_request(
    run: ClaimedRun, wanted: WantedCall, call: AgentCall, tree: CallTree, *, continues: bool = True
) -> SendMessageRequest:
    made = f"{run.task_id}/{run.input_number}/{wanted.name}"
    context_id = wanted.context_id
    if wanted.context and not context_id:
        lasting = f"{run.context_id}/{wanted.agent}/{wanted.context}"
        context_id = str(uuid.uuid5(uuid.NAMESPACE_OID, lasting))
    about: dict[str, Any] = {
        "rootTask": tree.root_id,
        "parentTask": run.task_id,
        "parentAgent": run.scope.agent,
        "path": tree.path,
        "depth": len(tree.path),
    }
    task_id = wanted.task_id if continues else ""
    message = Message(
        message_id=str(uuid.uuid5(uuid.NAMESPACE_OID, made)),
        role=Role.USER,
        parts=wanted.parts,
        task_id=task_id or None,
        context_id=context_id or None,
        metadata={**(wanted.metadata or {}), DELEGATION: about},
    )
    return SendMessageRequest(message=message, wants_task=True)


def _describe(fault: A2AError) -> str:
    faults = fault.violations if isinstance(fault, InvalidParams) else ()
    return "; ".join(f"{path} {text}" for path, text in faults) or fault.message
