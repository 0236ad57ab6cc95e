"""What the guard lets out, under which policy, and what it says of the rest."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_tasks.outbound import (
    AddressRefused,
    FaultKind,
    Guard,
    NameNotResolved,
    OutboundPolicy,
    SystemResolver,
)
from a2a_tasks.outbound.networks import is_public
from a2a_tasks.outbound.policy import Proxy
from a2a_tasks.outbound.web_address import WebAddress, parse
from tests.support.rows import rows


class Names:
    """A resolver that knows these names, and remembers what it was asked."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known = {name.replace("_", "."): answers for name, answers in known.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        return self.known[name]


def guard(names: Names | None = None, **policy: Any) -> Guard:
    """A guard of this policy, that resolves nothing else."""
    return Guard(OutboundPolicy.read(**policy), names or Names())


class TestAUrl:
    @rows(
        ("url", "host", "port", "path"),
        [
            ("https://example.com", "example.com", 443, "/"),
            ("HTTPS://EXAMPLE.COM:443/A?B=C#D", "example.com", 443, "/A?B=C"),
            ("http://a.example:8080?x", "a.example", 8080, "/?x"),
            ("https://8.8.8.8/x", "8.8.8.8", 443, "/x"),
            ("https://[2606:4700:0:0::1111]:444/", "2606:4700::1111", 444, "/"),
            ("https://bücher.example/ü?ü", "xn--bcher-kva.example", 443, "/%C3%BC?%C3%BC"),
            ("https://BÜCHER.example/", "xn--bcher-kva.example", 443, "/"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/"),
            ("https://r3---a_b.example/@user:p@x", "r3---a_b.example", 443, "/@user:p@x"),
            ('https://a.example/%41/../{"<>}', "a.example", 443, "/%41/../%7B%22%3C%3E%7D"),
            ("https://127.0.0.1.example/", "127.0.0.1.example", 443, "/"),
        ],
    )
    def test_is_read_in_one_way(self, url: str, host: str, port: int, path: str) -> None:
        found = parse(url)
        assert (found.host, found.port, found.path) == (host, port, path)
        assert parse(str(found)) == found

    @rows(
        ("url", "authority"),
        [
            ("https://a.example:443/", "a.example"),
            ("http://a.example:80/", "a.example"),
            ("http://a.example:443/", "a.example:443"),
            ("https://[::1]/", "[::1]"),
            ("https://[::1]:444/", "[::1]:444"),
        ],
    )
    def test_names_its_port_where_it_is_not_the_usual_one(self, url: str, authority: str) -> None:
        assert parse(url).authority == authority

    @rows(
        "host",
        ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "1.2.3.4.5", "a.0", "a.0x", "a.0x7f"],
    )
    def test_whose_host_ends_in_a_number_is_no_name(self, host: str) -> None:
        """C libraries and resolvers take it for an address (WHATWG URL, "ends in a number")."""
        with pytest.raises(AddressRefused, match="four decimal numbers"):
            parse(f"https://{host}/")

    def test_may_be_as_long_as_that_and_no_longer(self) -> None:
        whole = "https://a.example/".ljust(2048, "x")
        assert len(parse(whole).path) == 2048 - len("https://a.example")
        with pytest.raises(AddressRefused, match="2048"):
            parse(whole + "x")

    @rows(
        ("url", "reason"),
        [
            ("https://me:secret@a.example/", "must not hold credentials"),
            ("https://a.example@b.example/", "must not hold credentials"),
            ("https://a.example\\@b.example/", "must not hold white space"),
            ("https://a.example/\u200b", "must not hold white space"),
            ("https://a.example:0/", "must have a port from 1 to 65535"),
            ("https://a.example:65536/", "must have a port from 1 to 65535"),
            (f"https://{'a.' * 126}example/", "must have a host of at most 253 characters"),
        ],
    )
    def test_that_parsers_disagree_about_is_refused(self, url: str, reason: str) -> None:
        with pytest.raises(AddressRefused) as caught:
            parse(url)
        assert caught.value.reason.startswith(reason)

    def test_is_the_same_however_its_letters_are_composed(self) -> None:
        assert parse("https://bu\u0308cher.example/") == parse("https://b\xfccher.example/")

    @given(st.text(max_size=60))
    def test_of_any_text_is_read_or_refused(self, text: str) -> None:
        for url in (text, f"https://{text}", f"https://a.example{text}"):
            try:
                found = parse(url)
            except AddressRefused:
                continue
            assert parse(str(found)) == found
            assert str(found).isascii()


class TestAnAddress:
    @rows(
        "text",
        [
            *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
            *("172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
            *("2000::1", "2606:4700::1111", "2a00::1", "2001:200::1", "64:ff9b::808:808", "3ffd::1"),
        ],
    )  # fmt: skip
    def test_of_the_internet_is_public(self, text: str) -> None:
        assert is_public(ipaddress.ip_address(text))

    @given(st.ip_addresses())
    def test_that_python_calls_private_is_never_public(self, address: Any) -> None:
        nearer = (address.is_private, address.is_multicast, address.is_reserved)
        carried = address.version == 6 and address in ipaddress.IPv6Network("64:ff9b::/96")
        assert not (is_public(address) and any(nearer) and not carried)


class TestTheLook:
    """When a URL is handed in."""

    def test_asks_nobody(self) -> None:
        names = Names()
        assert guard(names).check("https://no.such.example/").host == "no.such.example"
        assert names.asked == []

    @rows(
        ("url", "reason"),
        [
            ("http://a.example/", "must be an https URL"),
            ("https://10.0.0.1/", "must not lead to a private or reserved address"),
            ("https://localhost/", "must not lead to a private or reserved address"),
            ("https://a.example:22/", "must not have this port"),
        ],
    )
    def test_says_what_is_wrong(self, url: str, reason: str) -> None:
        with pytest.raises(AddressRefused) as caught:
            guard().check(url)
        assert caught.value.reason == reason

    @rows(
        "name",
        [
            *("localhost", "localdomain", "local", "internal", "intranet", "private", "corp"),
            *("home", "home.arpa", "lan", "mail", "invalid", "onion"),
        ],
    )
    def test_refuses_a_name_below_one_that_is_inside_networks(self, name: str) -> None:
        with pytest.raises(AddressRefused, match="must not lead to a private"):
            guard().check(f"https://a.{name}/")
        assert guard().check(f"https://{name}.example/").host == f"{name}.example"

    @rows("name", ["intranet", "redis", "a"])
    def test_refuses_a_name_without_a_dot(self, name: str) -> None:
        with pytest.raises(AddressRefused, match="must not lead to a private"):
            guard().check(f"https://{name}/")


class TestACall:
    async def test_goes_to_every_public_address_of_a_name(self) -> None:
        names = Names(a_example=["8.8.8.8", "2606:4700::1111"])
        target = await guard(names).resolve("https://a.example:8443/x")
        assert list(map(str, target.addresses)) == ["8.8.8.8", "2606:4700::1111"]
        assert (target.port, target.proxy) == (8443, None)
        assert names.asked == ["a.example"]

    async def test_to_a_literal_asks_nobody(self) -> None:
        target = await guard().resolve("https://8.8.8.8/")
        assert target.addresses == (ipaddress.ip_address("8.8.8.8"),)

    async def test_is_judged_anew_each_time(self) -> None:
        names = Names(a_example=["8.8.8.8"])
        mine = guard(names)
        await mine.resolve("https://a.example/")
        names.known["a.example"] = ["10.0.0.1"]
        with pytest.raises(AddressRefused):
            await mine.resolve("https://a.example/")

    async def test_that_is_refused_tells_the_address_to_the_operator_only(self) -> None:
        with pytest.raises(AddressRefused) as caught:
            await guard(Names(a_example=["10.1.2.3"])).resolve("https://a.example/")
        assert "10.1.2.3" not in caught.value.reason
        assert "10.1.2.3" in caught.value.detail

    @rows("answers", [[], ["8.8.8.8"] * 65, ["8.8.8"], ["nonsense"]])
    async def test_needs_a_sensible_answer(self, answers: list[str]) -> None:
        with pytest.raises(NameNotResolved):
            await guard(Names(a_example=answers)).resolve("https://a.example/")


class TestLoopback:
    """A2A_WEBHOOK_ALLOW_PRIVATE and its like."""

    @rows("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "a.localhost", "LOCALHOST"])
    async def test_is_let_through_where_it_is_allowed_in_clear_too(self, host: str) -> None:
        for scheme in ("http", "https"):
            target = await guard(loopback=True).resolve(f"{scheme}://{host}:8080/")
            assert all(address.is_loopback for address in target.addresses)

    @rows(
        "url",
        [
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "http://[::ffff:127.0.0.1]/",
            "http://127.1/",
            "http://8.8.8.8/",
            "http://a.example/",
            "https://redis/",
            "https://192.168.0.1/",
            "https://169.254.169.254/",
            "http://localhost:6379/",
            "http://localhost:22/",
            "http://localhost.example:8080/",
        ],
    )
    async def test_opens_nothing_else(self, url: str) -> None:
        with pytest.raises(AddressRefused):
            await guard(Names(a_example=["127.0.0.1"]), loopback=True).resolve(url)

    async def test_has_any_port_that_is_no_service_s(self) -> None:
        assert (await guard(loopback=True).resolve("http://127.0.0.1:9/")).port == 9
        with pytest.raises(AddressRefused):
            await guard().resolve("https://8.8.8.8:9/")

    async def test_by_another_name_is_let_through_in_private_only(self) -> None:
        names = Names(a_example=["127.0.0.1"])
        assert (await guard(names, loopback=True).resolve("https://a.example/")).addresses


class TestNetworks:
    async def test_that_are_allowed_are_called_by_name_and_by_number(self) -> None:
        mine = guard(Names(a_example=["10.1.2.3"]), allowed="10.1.0.0/16, fd00::/8")
        for url in ("https://a.example/", "https://10.1.255.255/", "https://[fd00::1]/"):
            assert (await mine.resolve(url)).addresses

    @rows("url", ["https://10.2.0.1/", "https://[fc00::1]/", "http://10.1.0.1/"])
    async def test_open_nothing_beside_them(self, url: str) -> None:
        with pytest.raises(AddressRefused):
            await guard(allowed="10.1.0.0/16,fd00::/8").resolve(url)

    async def test_may_be_names(self) -> None:
        names = Names(hooks_corp=["10.0.0.1"], a_lan=["10.0.0.2"], redis=["10.0.0.3"])
        mine = guard(names, allowed="hooks.corp,.lan,redis")
        for host in ("hooks.corp", "HOOKS.corp", "a.lan", "redis"):
            assert (await mine.resolve(f"https://{host}/")).addresses

    @rows("host", ["a.hooks.corp", "xhooks.corp", "lan", "b.corp", "xredis"])
    async def test_as_names_open_nothing_beside_them(self, host: str) -> None:
        with pytest.raises(AddressRefused):
            await guard(allowed="hooks.corp,.lan,redis").resolve(f"https://{host}/")


class TestPorts:
    @rows("port", [80, 443, 1024, 8000, 8080, 8443, 65535])
    def test_are_open_where_services_of_the_web_are(self, port: int) -> None:
        assert guard().check(f"https://a.example:{port}/").port == port

    def test_of_other_services_open_if_named_singly(self) -> None:
        assert guard(ports="443,6379,6000-7000").check("https://a.example:6379/").port == 6379

    @rows("port", [80, 6380, 7001])
    def test_are_as_the_operator_says(self, port: int) -> None:
        with pytest.raises(AddressRefused, match="port"):
            guard(ports="443,6379,6000-7000").check(f"https://a.example:{port}/")


class TestAPolicy:
    @rows(
        ("said", "named"),
        [
            ({"allowed": "10.0.0.1/8"}, "10.0.0.1/8"),
            ({"allowed": "10.0.0/8"}, "10.0.0/8"),
            ({"allowed": "fd00::/129"}, "fd00::/129"),
            ({"allowed": "https://a.example"}, "https://a.example"),
            ({"allowed": "*.example"}, "*.example"),
            ({"allowed": "a..b"}, "a..b"),
            ({"ports": "0"}, "0"),
            ({"ports": "1-65536"}, "1-65536"),
            ({"ports": "90-80"}, "90-80"),
            ({"ports": "http"}, "http"),
            ({"proxy": "https://proxy:3128"}, "proxy"),
            ({"proxy": "http://proxy"}, "proxy"),
            ({"proxy": "proxy:3128"}, "proxy"),
            ({"proxy": "http://proxy:x"}, "proxy"),
            ({"proxy": "http://proxy:3128/path"}, "proxy"),
        ],
    )
    def test_that_makes_no_sense_is_refused_by_name(self, said: dict[str, str], named: str) -> None:
        with pytest.raises(ValueError, match=r".") as caught:
            OutboundPolicy.read(**said)  # type: ignore[arg-type]
        assert named in str(caught.value)

    def test_never_shows_the_proxys_password(self) -> None:
        with pytest.raises(ValueError, match="proxy") as caught:
            OutboundPolicy.read(proxy="http://me:secret@proxy")
        assert "secret" not in str(caught.value)
        known = OutboundPolicy.read(proxy="http://me:s%40x@proxy:3128").proxy
        assert known == Proxy("proxy", 3128, "Basic bWU6c0B4")
        assert "bWU6c0B4" not in repr(known)


class TestAProxy:
    async def test_is_what_is_resolved(self) -> None:
        names = Names(proxy_corp=["10.0.0.9"])
        mine = guard(names, proxy="http://proxy.corp:3128")
        target = await mine.resolve("https://a.example/")
        assert names.asked == ["proxy.corp"]
        assert (list(map(str, target.addresses)), target.port) == (["10.0.0.9"], 3128)

    @rows("url", ["https://10.0.0.1/", "https://localhost/", "http://a.example"])
    async def test_does_not_open_what_the_text_forbids(self, url: str) -> None:
        with pytest.raises(AddressRefused):
            await guard(proxy="http://proxy.corp:3128").resolve(url)


class TestTheSystemsResolver:
    async def test_knows_what_the_machine_knows(self) -> None:
        assert "127.0.0.1" in await SystemResolver()("localhost")

    @rows("name", ["a" * 64 + ".example", "a..b"])
    async def test_says_of_what_is_no_name_that_it_is_not_resolved(self, name: str) -> None:
        with pytest.raises(NameNotResolved):
            await SystemResolver()(name)

    async def test_gives_up_in_time_and_asks_once_at_a_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that hangs holds one thread, however many wait; and none waits for ever."""
        free, asked = threading.Event(), []

        def hanging(name: str, *_: Any, **__: Any) -> list[Any]:
            asked.append(name)
            free.wait(10)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))] * 2

        monkeypatch.setattr(socket, "getaddrinfo", hanging)
        resolver = SystemResolver(seconds=0.05)
        gone = await asyncio.gather(*(resolver("a") for _ in range(5)), return_exceptions=True)
        assert all(isinstance(one, NameNotResolved) for one in gone)
        late = SystemResolver(seconds=10)
        waiting = [asyncio.create_task(late.__call__("b")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        free.set()
        assert await asyncio.gather(*waiting[1:]) == [["8.8.8.8"]] * 2
        assert asked == ["a", "b"]

    async def test_is_away_itself_if_nobody_answers_for_three_names_in_a_row(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        says: dict[str, int] = {"gone": socket.EAI_NONAME}

        def failing(name: str, *_: Any, **__: Any) -> list[Any]:
            raise socket.gaierror(says.get(name, socket.EAI_AGAIN), "as the test has it")

        monkeypatch.setattr(socket, "getaddrinfo", failing)
        resolver = SystemResolver()
        asked = ["a", "a", "a", "b", "gone", "a", "b", "c", "a", "gone", "c"]
        kinds = [await kind_of(resolver, name) for name in asked]
        away = [name for name, kind in zip(asked, kinds, strict=True) if kind is FaultKind.HOST]
        assert kinds.index(FaultKind.HOST) == 7
        assert away == ["c", "a"]

    async def test_that_has_no_thread_left_is_at_fault_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Names whose servers hang are no fault of those who wait behind them."""
        free = threading.Event()

        def hanging(name: str, *_: Any, **__: Any) -> list[Any]:
            free.wait(10)
            raise socket.gaierror(socket.EAI_NONAME, "")

        monkeypatch.setattr(socket, "getaddrinfo", hanging)
        resolver = SystemResolver(seconds=1.0, threads=1)
        first = asyncio.create_task(kind_of(resolver, "hangs"))
        await asyncio.sleep(0)
        assert [await kind_of(resolver, "waits"), await first] == [FaultKind.HOST, FaultKind.DNS]
        free.set()


class Names250:
    """The system's resolver, for 250 names whose servers hang and for others that answer at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.hang, self.free = True, threading.Event()
        #: Good names whose servers do not answer either.
        self.lost: set[str] = set()
        self.bad = [f"bad{number}" for number in range(250)]
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, name: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(name)
        if name.startswith("bad") and self.hang:
            self.free.wait(60)
        if name.startswith("bad") or name in self.lost:
            raise socket.gaierror(socket.EAI_AGAIN, "as the test has it")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))]

    @asynccontextmanager
    async def waited_for(self, resolver: SystemResolver) -> AsyncIterator[None]:
        """Callers wait for all bad names; they leave at the end of the block."""
        waiting = [asyncio.ensure_future(resolver(name)) for name in self.bad]
        await asyncio.sleep(0)
        try:
            yield
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)


class TestNamesThatHang:
    @pytest.fixture
    def names(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Names250]:
        """Names whose servers hang until the end of the test."""
        names = Names250(monkeypatch)
        yield names
        names.free.set()

    async def test_hold_up_none_that_answered_before(self, names: Names250) -> None:
        resolver = SystemResolver()
        await resolver("good")
        async with names.waited_for(resolver):
            assert await resolver("good") == ["8.8.8.8"]

    async def test_hold_up_no_new_one_once_they_are_known(self, names: Names250) -> None:
        resolver = SystemResolver()
        names.hang = False
        for name in names.bad:
            await kind_of(resolver, name)
        names.hang = True
        async with names.waited_for(resolver):
            assert await resolver("new") == ["8.8.8.8"]

    async def test_are_not_looked_up_for_callers_that_have_left(self, names: Names250) -> None:
        resolver = SystemResolver(seconds=60)
        async with names.waited_for(resolver):
            pass
        names.free.set()
        await resolver("new")
        assert len(names.asked) < 30

    async def test_are_looked_up_as_long_as_one_caller_stays(self, names: Names250) -> None:
        resolver = SystemResolver(seconds=60, threads=1)
        async with names.waited_for(resolver):
            stays = asyncio.ensure_future(resolver("new"))
            leaves = asyncio.ensure_future(resolver("new"))
            await asyncio.sleep(0)
            leaves.cancel()
            await asyncio.wait([leaves])
        names.free.set()
        assert await stays == ["8.8.8.8"]
        assert names.asked.count("new") == 1

    async def test_are_at_fault_without_a_thread_too_once_they_are_known(
        self, names: Names250
    ) -> None:
        """Otherwise they excuse each other, and nobody counts their attempts."""
        resolver = SystemResolver(seconds=0.05, threads=1)
        names.hang = False
        for name in names.bad[:2]:
            await kind_of(resolver, name)
        await resolver("good")
        names.hang = True
        hangs = [kind_of(resolver, name) for name in names.bad[:2]]
        assert await asyncio.gather(*hangs) == [FaultKind.DNS] * 2
        assert names.asked == [*names.bad[:2], "good", names.bad[0]]

    async def test_hold_up_none_whose_answer_was_lost_once(self, names: Names250) -> None:
        resolver = SystemResolver()
        await resolver("good")
        names.hang, names.lost = False, {"good"}
        for name in [*names.bad, "good"]:
            await kind_of(resolver, name)
        names.hang, names.lost = True, set()
        async with names.waited_for(resolver):
            assert await resolver("good") == ["8.8.8.8"]


async def kind_of(resolver: SystemResolver, name: str) -> FaultKind:
    """Of the fault of a name that is not resolved."""
    with pytest.raises(NameNotResolved) as caught:
        await resolver(name)
    return caught.value.kind


def test_a_web_address_is_a_value() -> None:
    assert parse("https://a.example/#x") == WebAddress("https", "a.example", 443, "/", None)
