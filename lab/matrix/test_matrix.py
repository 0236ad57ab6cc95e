"""Other people's objects do not exist: nobody can tell one from what was never there, on any wire, by any operation.

Each cell compares the outcome of a request for an object of Alice's with that of the same request, of the same caller,
for an object that is not there: status, headers, bytes, effect on the tables, statements asked of the database.
Alice's own request must come to something else, or the cell would prove nothing.

No operation returns the memory of a conversation: the agent of the matrix keeps some in each of Alice's, and answers every
message with what it finds, so messages "in a context" would show hers. Operators' pages, exports and the agent's own reads
are in tests/integration (console/admin/test_run_and_context_admin, console/privacy, execution/test_conversation).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lab.matrix.answers import answer
from lab.matrix.asks import (
    OPERATIONS,
    TARGETS,
    AnyWire,
    Ask,
    Named,
    ask,
    wires,
)
from lab.matrix.outcomes import Outcome, Watcher
from tests.support.access.issuer import AUDIENCE, Issuer
from tests.support.bindings.client import Client
from tests.support.dialects.clients import BY_NAME

pytestmark = pytest.mark.usefixtures("host", "agents")
#: Who is let in, and has nothing of Alice's.
ADMITTED = ["a colleague", "the same name in another tenant"]
#: Who is not: the agent that is asked, and the status of the refusal.
REFUSED: dict[str, tuple[str, int]] = {
    "anonymous": ("ledger", 401),
    "expired": ("ledger", 401),
    "made out to another agent": ("ledger", 401),
    "without the scope": ("locked", 403),
    "at an agent that is switched off": ("shut", 404),
}
OPEN = "anonymous on an open host"
WHO = [OPEN, *ADMITTED, *REFUSED, "the owner"]
#: How often a stream may begin at different places by chance.
STREAMS_TRIED = 5
#: What everybody may have who may come at all.
COMMON = {"GetExtendedAgentCard", "GetAgentCard", "GetAgentCard by a call"}


def test_the_matrix_has_as_many_cells_as_it_should() -> None:
    assert len(TARGETS) * len(WHO) >= 2800


Asked = Callable[[str], Sequence[str]]


class Case:
    """A wire, everybody's credentials, and what is Alice's."""

    def __init__(
        self, wire: AnyWire, client: Client, issuer: Issuer, asked: Asked | None = None
    ) -> None:
        self.wire, self.client, self.watcher = wire, client, Watcher(client)
        self.operations = [operation for one, operation in TARGETS if one.name == wire.name]
        #: What each of those who may ask does ask for.
        self.asked = asked or (lambda who: self.operations)
        #: By agent and operation: what Alice has, an own set for each, since her own request uses it up.
        self.prizes: dict[tuple[str, str], Named] = {}
        self.cells = 0
        agents = [f"{AUDIENCE}/agents/{slug}" for slug in ("ledger", "locked", "shut", "planner")]
        alice: dict[str, Any] = {"sub": "alice", "org": "acme", "scope": "count", "aud": agents}
        shown: dict[str, dict[str, Any]] = {
            "the owner": {},
            "a colleague": {"sub": "bob"},
            "the same name in another tenant": {"org": "umbrella"},
            "expired": {"exp": 1},
            "made out to another agent": {"aud": f"{AUDIENCE}/agents/demo"},
            "without the scope": {"scope": None},
            "at an agent that is switched off": {},
        }
        self.headers = {
            who: {"authorization": f"Bearer {issuer.token(**{**alice, **changed})}"}
            for who, changed in shown.items()
        } | {"anonymous": {}, OPEN: {}}
        #: A task of each.
        self.own: dict[str, str] = {}

    async def prepare(self) -> None:
        """Give Alice what others will ask for."""
        for operation in self.operations:
            self.prizes["ledger", operation] = await self.prize_for(operation)
        token = await self.token()
        for slug in ("locked", "shut"):
            made = replace(await self.prize(slug), key=str(uuid.uuid4()))
            self.prizes |= {(slug, operation): made for operation in self.operations}
        self.prizes = {place: replace(made, token=token) for place, made in self.prizes.items()}

    async def do(self, who: str, asked: Ask | None, slug: str = "ledger") -> Any:
        """Ask, and read the answer, which is no error."""
        assert asked is not None
        response = await answer(self.client, slug, asked, self.headers[who])
        assert response.status == 200, response
        document = response.json if response.body else {}
        assert "error" not in document, document
        return document.get("result", document)

    async def task(self, who: str, text: str, slug: str = "ledger") -> Named:
        """A task of somebody, with its context."""
        name = str(uuid.uuid4()) if self.wire.grammar.names_tasks else ""
        asked = ask(self.wire, "send", Named(task=name), text)
        answer = await self.do(who, asked, slug)
        made = answer.get("task", answer)
        return Named(task=made["id"], context=made.get("contextId") or made["sessionId"])

    async def prize(self, slug: str = "ledger") -> Named:
        """Everything Alice has that others might ask for: a task that waits for her, its webhook, a page, a key."""
        made = await self.task("the owner", "ask", slug)
        config = str(uuid.uuid4())
        named = replace(made, config=config)
        await self.do("the owner", ask(self.wire, "create", named), slug)
        listed = await self.do("the owner", ask(BY_NAME["v10-http"], "list", Named()), slug)
        assert made.task in json.dumps(listed)
        return named

    async def prize_for(self, operation: str) -> Named:
        """What others might ask for by this operation."""
        return await (self.keyed(operation) if operation.endswith("under a key") else self.prize())

    async def token(self) -> str:
        """The way to Alice's next page."""
        asked = ask(BY_NAME["v10-http"], "list", Named())
        assert asked is not None
        listed = await self.do("the owner", asked._replace(path=asked.path + "?pageSize=1"))
        token: str = listed["nextPageToken"]
        return token

    async def keyed(self, operation: str) -> Named:
        """What Alice has under a key."""
        named = Named(key=str(uuid.uuid4()), task=str(uuid.uuid4()))
        asked = OPERATIONS[operation](self.wire, named)
        assert asked is not None
        response = await answer(self.client, "ledger", asked, self.headers["the owner"])
        assert response.status == 200, response
        return named

    async def outcome(self, who: str, operation: str, slug: str, named: Named) -> Outcome:
        """What a request comes to."""
        given = replace(named, own=self.own.get(who, named.task))
        asked = OPERATIONS[operation](self.wire, given)
        assert asked is not None
        lasts = who == "the owner" and operation.startswith("SubscribeToTask")
        return await self.watcher.outcome(slug, asked, self.headers[who], given, lasts=lasts)

    async def compared(self, who: str, slug: str, operation: str) -> tuple[Outcome, Outcome, Named]:
        """What a request for Alice's comes to, and what the same comes to for nothing."""
        prize = self.prizes[slug, operation]
        absent = await self.outcome(who, operation, slug, missing(prize))
        self.cells += 1
        return await self.outcome(who, operation, slug, prize), absent, prize

    async def alike(self, who: str, slug: str, operation: str) -> tuple[Outcome, Outcome, Named]:
        """The same, again if chance has a part in it: a stream begins before the agent does, or behind."""
        found, absent, prize = await self.compared(who, slug, operation)
        tries = STREAMS_TRIED if operation.startswith("SendStreaming") else 1
        while found != absent and not found.refused and not absent.refused and (tries := tries - 1):
            # Something new of Alice's: by that key, or in that context, whoever asked has something by now.
            made = await self.prize_for(operation)
            self.prizes[slug, operation] = replace(made, token=prize.token)
            await self.watcher.begin()
            found, absent, prize = await self.compared(who, slug, operation)
        return found, absent, prize

    async def strangers(self, who: str, slug: str = "ledger") -> list[tuple[str, Outcome]]:
        """Somebody asks for everything of Alice's, and cannot tell that it is there. What was said each time."""
        await self.watcher.begin()
        said = []
        for operation in self.asked(who):
            found, absent, prize = await self.alike(who, slug, operation)
            assert found == absent, (who, operation)
            hidden(found, prize)
            said.append((operation, found))
        return said


def missing(like: Named) -> Named:
    """Names of the same shape, of nothing."""
    token = like.token and like.token[:-6] + "AAAAAA"
    fresh = {name: str(uuid.uuid4()) for name, value in vars(like).items() if value}
    return replace(like, **(fresh | {"token": token}))


def hidden(found: Outcome, prize: Named) -> None:
    """Nothing of Alice's was changed, nor anything at all by what was refused; and no id of hers comes up."""
    assert found.effect == "nothing" or not found.refused
    assert found.effect in {"nothing", "more"}
    assert not any(value and value.encode() in found.body for value in vars(prize).values())


async def nobody_can_tell(case: Case, settings: Any) -> None:
    """Everybody asks for what is Alice's; she alone gets it."""
    await case.prepare()
    settings.A2A_ANONYMOUS = "1"
    case.own[OPEN] = (await case.task(OPEN, "hi")).task
    await case.strangers(OPEN)
    settings.A2A_ANONYMOUS = "0"
    settings.A2A_DISABLED_AGENTS = "shut"
    for who in ADMITTED:
        case.own[who] = (await case.task(who, "hi")).task
        await case.strangers(who)
    for who, (slug, status) in REFUSED.items():
        refused_alike(await case.strangers(who, slug), status)
    for operation in case.asked("the owner"):
        found, absent, _ = await case.compared("the owner", "ledger", operation)
        assert (found != absent) == (operation not in COMMON), operation
        assert not found.refused, operation


@pytest.mark.parametrize("wire", wires(), ids=lambda wire: wire.name)
async def test_nobody_can_tell_what_is_another_s_from_what_is_not_there(
    wire: AnyWire, client: Client, issuer: Issuer, settings: Any, record_property: Any
) -> None:
    case = Case(wire, client, issuer)
    await nobody_can_tell(case, settings)
    record_property("cells", case.cells)


def refused_alike(said: list[tuple[str, Outcome]], status: int) -> None:
    """Whoever is not let in hears the same of everything, but for the public card of an agent that is there."""
    heard = [o for operation, o in said if operation != "GetAgentCard" or status == 404]
    challenges = {tuple(h for h in o.headers if h[0] == "www-authenticate") for o in heard}
    assert {outcome.status for outcome in heard} == {status}
    assert len(challenges) == 1
    assert not any(outcome.asked for outcome in heard)
