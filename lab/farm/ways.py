"""The 36 ways in which receivers misbehave, or behave; the first part of a path is the number of one, the second its variant.

A way gets the request it was sent, the connection, and the ground it stands on (`server.py`), and does as it likes. What
must become of notifications sent there is beside it.
"""

from __future__ import annotations

import asyncio
import enum
import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Protocol
from urllib.parse import parse_qs

from tests.support.push import receivers
from tests.support.push.receivers import Seen, answer, gone, head

__all__ = ["WAYS", "Ends", "Ground", "Way", "fails_first"]

Writer = asyncio.StreamWriter


class Ends(enum.StrEnum):
    """What becomes of every notification to a receiver of a kind."""

    DELIVERED = "delivered"
    DEAD = "dead"  #: by ten attempts, or because its receiver was given up
    GONE = "gone"  #: dead, and the webhook is disabled after one attempt
    EITHER = "either"
    REMOVED = "removed"  #: delivered until the webhook was taken away, then cancelled


class Ground(Protocol):
    """What a way stands on."""

    #: How often each notification has come, each path, and each webhook (`first TAG`).
    tries: Counter[str]

    @property
    def limit(self) -> float:
        """Seconds that the host gives one delivery."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Ports by the names of what listens there."""

    def answered(self, seen: Seen, status: int, wait: float = 0.0) -> None:
        """Write down that this was the answer, and what it asks to wait; before it is sent."""

    def tell(self, what: str, **said: Any) -> object:
        """Write something down."""

    async def call(self, method: str, path: str, said: Any = None, key: str = "") -> Any:
        """Call the host; returns what it says, None if it says nothing."""


Does = Callable[[Seen, Writer, Ground], Awaitable[None]]


@dataclass(frozen=True)
class Way:
    """One kind of receiver."""

    number: int
    what: str
    ends: Ends
    does: Does | None
    #: Parts of the path after the number; each is a receiver.
    variants: tuple[str, ...] = ("",)
    #: What listens there, and under which scheme.
    port: str = "http"
    scheme: str = "http"
    #: Names of the machine (`host_app/names.py`), one a variant or one for all.
    hosts: tuple[str, ...] = ("receiver.farm.test",)

    def urls(self, ports: Mapping[str, int]) -> list[str]:
        """The URL of each variant, without a query."""
        port, hosts = ports[self.port], self.hosts * len(self.variants)
        named = zip(self.variants, hosts, strict=False)
        tails = [(host, f"/{self.number}" + (f"/{name}" if name else "")) for name, host in named]
        return [f"{self.scheme}://{host}:{port}{tail}" for host, tail in tails]


WAYS: dict[int, Way] = {}


def way(number: int, what: str, ends: Ends = Ends.DEAD, **more: Any) -> Callable[[Does], Does]:
    """Have a function be the way of that number."""

    def keep(does: Does) -> Does:
        WAYS[number] = Way(number, what, ends, does, **more)
        return does

    return keep


def elsewhere(number: int, what: str, **more: Any) -> None:
    """A way in which nobody gets as far as a request."""
    WAYS[number] = Way(number, what, Ends.DEAD, None, **more)


def variant(seen: Seen) -> str:
    """The second part of the path."""
    return seen.path.partition("?")[0].removeprefix("/").partition("/")[2]


def said(seen: Seen, name: str) -> str:
    """A value of the query."""
    return parse_qs(seen.path.partition("?")[2]).get(name, [""])[0]


def id_of(seen: Seen) -> str:
    """The `webhook-id`."""
    return (seen.header("webhook-id") or [""])[0]


def fails_first(id_: str) -> int:
    """How often a notification is refused before it is taken, by its id: one to four times."""
    return 1 + hashlib.sha256(id_.encode()).digest()[0] % 4


def take(seen: Seen, writer: Writer, ground: Ground, status: str = "200 OK") -> None:
    """Say yes."""
    code = int(status.split()[0])
    ground.answered(seen, code)
    if code == 204:
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    else:
        writer.write(answer(status, body=b"thanks"))


def refuse(
    seen: Seen,
    writer: Writer,
    ground: Ground,
    status: str,
    *headers: str,
    body: bytes = b"no",
    wait: float = 0.0,
) -> None:
    """Say no; `wait` are the seconds that the headers ask for."""
    ground.answered(seen, int(status.split()[0]), wait)
    writer.write(answer(status, *headers, body=body))


def as_a_receiver(function: receivers.Behaviour, status: int = 0) -> Does:
    """A way of the sender's own tests; `status` is what its head says, if it has one."""

    async def does(seen: Seen, writer: Writer, ground: Ground) -> None:
        if status:
            ground.answered(seen, status)
        await function(seen, writer)

    return does


@way(1, "200, just before the time is up", Ends.DELIVERED)
async def just_in_time(seen: Seen, writer: Writer, ground: Ground) -> None:
    await asyncio.sleep(ground.limit * 14 / 15)
    take(seen, writer, ground)


@way(2, "200, just after the time is up")
async def just_too_late(seen: Seen, writer: Writer, ground: Ground) -> None:
    await asyncio.sleep(ground.limit * 16 / 15)
    writer.write(answer("200 OK"))


elsewhere(3, "accepts no connection", port="deaf")
elsewhere(4, "accepts, and never reads", port="unread")
way(5, "reads, and never answers")(as_a_receiver(receivers.never_answers))


@way(6, "a byte of the head a second")
async def head_by_bytes(seen: Seen, writer: Writer, ground: Ground) -> None:
    await slowly(writer, ground, b"HTTP/1.1 200 OK\r\nX-Slow: ")


@way(7, "a byte of the body a second", Ends.DELIVERED)
async def body_by_bytes(seen: Seen, writer: Writer, ground: Ground) -> None:
    ground.answered(seen, 200)
    writer.write(head("Content-Length: 100000"))
    await slowly(writer, ground, b"")


async def slowly(writer: Writer, ground: Ground, data: bytes) -> None:
    """Fifteen bytes in the time that the host gives."""
    for n in range(60):
        writer.write(data[n : n + 1] or b"x")
        await writer.drain()
        await asyncio.sleep(ground.limit / 15)


way(8, "a body without end", Ends.DELIVERED)(as_a_receiver(receivers.endless_body, 200))


@way(9, "a body of 100 MB", Ends.DELIVERED)
async def large_body(seen: Seen, writer: Writer, ground: Ground) -> None:
    ground.answered(seen, 200)
    block, size = bytes(65536), 100 * 1024 * 1024
    writer.write(head(f"Content-Length: {size}"))
    for _ in range(size // len(block)):
        writer.write(block)
        await writer.drain()


way(10, "a gzip bomb", Ends.DELIVERED)(as_a_receiver(receivers.gzip_bomb, 200))
way(11, "headers without end")(as_a_receiver(receivers.endless_headers))
way(12, "a header of 64 KB")(as_a_receiver(receivers.one_large_header))
way(13, "a status line that is none")(as_a_receiver(receivers.invalid_status_line))
way(14, "HTTP/0.9")(as_a_receiver(receivers.http_0_9))
way(15, "closes after the head", Ends.DELIVERED)(
    as_a_receiver(receivers.closes_after_the_head, 200)
)
way(16, "resets within the body", Ends.DELIVERED)(
    as_a_receiver(receivers.resets_within_the_body, 200)
)


@way(17, "500, always")
async def always_500(seen: Seen, writer: Writer, ground: Ground) -> None:
    refuse(seen, writer, ground, "500 Internal Server Error")


@way(18, "500 a few times, then 200", Ends.DELIVERED)
async def works_later(seen: Seen, writer: Writer, ground: Ground) -> None:
    later(seen, writer, ground, "500 Internal Server Error")


def later(seen: Seen, writer: Writer, ground: Ground, status: str, *headers: str) -> None:
    """No a few times, then yes."""
    if ground.tries[id_of(seen)] <= fails_first(id_of(seen)):
        refuse(seen, writer, ground, status, *headers)
    else:
        take(seen, writer, ground)


@way(19, "429 with seconds to wait, then 200", Ends.DELIVERED)
async def asks_for_seconds(seen: Seen, writer: Writer, ground: Ground) -> None:
    once(seen, writer, ground, "Retry-After: 1", wait=1.0)


def once(seen: Seen, writer: Writer, ground: Ground, *headers: str, wait: float) -> None:
    """429 the first time, then yes."""
    if ground.tries[id_of(seen)] == 1:
        refuse(seen, writer, ground, "429 Too Many Requests", *headers, wait=wait)
    else:
        take(seen, writer, ground)


@way(20, "429 with a date to wait for, then 200", Ends.DELIVERED)
async def asks_for_a_date(seen: Seen, writer: Writer, ground: Ground) -> None:
    date = formatdate(time.time() + 2, usegmt=True)  # of whole seconds
    once(seen, writer, ground, f"Retry-After: {date}", wait=1.0)


#: By variant.
ODD_WAITS = {"years": "315360000", "negative": "-5", "garbage": "soon, or later; \xff"}


@way(
    21,
    "429 with ten years to wait, or nonsense, then 200",
    Ends.DELIVERED,
    variants=tuple(ODD_WAITS),
)
async def asks_for_too_much(seen: Seen, writer: Writer, ground: Ground) -> None:
    if variant(seen) != "years":
        later(
            seen,
            writer,
            ground,
            "429 Too Many Requests",
            f"Retry-After: {ODD_WAITS[variant(seen)]}",
        )
    elif ground.tries["/21/years"] <= 2:  # twice in all: a day is long
        asked = ODD_WAITS["years"]
        header = f"Retry-After: {asked}"
        refuse(seen, writer, ground, "429 Too Many Requests", header, wait=float(asked))
    else:
        take(seen, writer, ground)


@way(22, "503 every other time", Ends.EITHER)
async def flaps(seen: Seen, writer: Writer, ground: Ground) -> None:
    coin = hashlib.sha256(f"{id_of(seen)} {ground.tries[id_of(seen)]}".encode()).digest()[0] % 2
    if coin:
        refuse(seen, writer, ground, "503 Service Unavailable")
    else:
        take(seen, writer, ground)


@way(23, "410", Ends.GONE)
async def is_gone(seen: Seen, writer: Writer, ground: Ground) -> None:
    refuse(seen, writer, ground, "410 Gone")


@way(24, "4xx, always, with all it was told in the answer", variants=("400", "401", "403", "404"))
async def refuses(seen: Seen, writer: Writer, ground: Ground) -> None:
    echo = "\n".join(f"{name}: {value}" for name, value in seen.headers).encode()
    refuse(seen, writer, ground, f"{variant(seen)} No", body=echo)


REDIRECTS = ("301", "302", "303", "307", "308")


@way(25, "a redirect to inside", variants=REDIRECTS)
async def leads_inside(seen: Seen, writer: Writer, ground: Ground) -> None:
    refuse(
        seen,
        writer,
        ground,
        f"{variant(seen)} X",
        f"Location: http://127.0.0.1:{ground.ports['canary']}/admin/",
    )


@way(26, "a redirect to outside", variants=REDIRECTS)
async def leads_outside(seen: Seen, writer: Writer, ground: Ground) -> None:
    refuse(
        seen,
        writer,
        ground,
        f"{variant(seen)} X",
        f"Location: http://outside.example.com:{ground.ports['canary']}/",
    )


@way(27, "other kinds of 2xx", Ends.DELIVERED, variants=("202", "204", "299"))
async def takes_oddly(seen: Seen, writer: Writer, ground: Ground) -> None:
    take(seen, writer, ground, f"{variant(seen)} X")


way(28, "interim answers without end")(as_a_receiver(receivers.interim_flood))


@way(29, "100 Continue, and never goes on")
async def never_goes_on(seen: Seen, writer: Writer, ground: Ground) -> None:
    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    await writer.drain()
    await gone(writer)


elsewhere(
    30,
    "a certificate of its own",
    scheme="https",
    port="self-signed",
    hosts=("self-signed.farm.test",),
)
elsewhere(
    31, "another's certificate", scheme="https", port="wrong-name", hosts=("wrong-name.farm.test",)
)
elsewhere(
    32, "a certificate of yesterday", scheme="https", port="expired", hosts=("expired.farm.test",)
)
elsewhere(33, "TLS 1.0 only", scheme="https", port="old-tls", hosts=("old-tls.farm.test",))
NAMES = ("nxdomain", "servfail", "timeout")
elsewhere(
    34,
    "a name that is not resolved",
    variants=NAMES,
    hosts=tuple(f"{name}.farm.test" for name in NAMES),
)


@way(35, "200, and calls the host back, twice", Ends.DELIVERED)
async def calls_back(seen: Seen, writer: Writer, ground: Ground) -> None:
    """As a receiver that is an agent itself does: what it was told makes it ask for something, under the id it was told."""
    message = {"messageId": id_of(seen), "role": "ROLE_USER", "parts": [{"text": "1"}]}
    path, key = "farm-tell/a2a/1.0/message:send", f"back-{id_of(seen)}"
    sends = [ground.call("POST", path, {"message": message}, key=key) for _ in range(2)]
    answers = await asyncio.gather(*sends, return_exceptions=True)
    made = [one["task"]["id"] for one in answers if isinstance(one, dict) and "task" in one]
    ground.tell("called-back", id=id_of(seen), tasks=made)
    take(seen, writer, ground)


@way(
    36,
    "deletes its webhook, or gives it another token, before it answers",
    Ends.REMOVED,
    variants=("delete", "rotate"),
)
async def changes_its_mind(seen: Seen, writer: Writer, ground: Ground) -> None:
    tag = said(seen, "tag")
    if ground.tries["first " + tag] == 3:  # tries of this webhook, not of this notification
        task, agent = said_task(seen), said(seen, "agent")
        path = f"{agent}/a2a/1.0/tasks/{task}/pushNotificationConfigs"
        if variant(seen) == "delete":
            await ground.call("DELETE", f"{path}/c")
            ground.tell("deleted", tag=tag)
        else:
            token = f"canary-rotated-{tag}"
            url = f"http://receiver.farm.test:{ground.ports['http']}{seen.path}"
            await ground.call("POST", path, {"id": "c", "url": url, "token": token})
            ground.tell("rotated", tag=tag, token=token)
    take(seen, writer, ground)


def said_task(seen: Seen) -> str:
    """The task that an item of 1.0 is of."""
    (item,) = json.loads(seen.body).values()
    return str(item["taskId"])
