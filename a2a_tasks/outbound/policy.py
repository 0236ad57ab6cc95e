"""The operator's policy of outbound calls."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from a2a_tasks.outbound.faults import AddressRefused
from a2a_tasks.outbound.networks import LOOPBACK, IPNetwork
from a2a_tasks.outbound.web_address import LAST_PORT, IPAddress, name_of

__all__ = ["PORTS", "OutboundPolicy", "Proxy"]

#: Ports that may be called by default.
PORTS = "80,443,1024-65535"
#: Ports of services that take a line of HTTP for a command, or need no credentials: refused unless named singly.
#: Source: WHATWG Fetch §2.9 ("bad ports"; but not 9, where everything is discarded), and common services of a cluster.
SERVICES = frozenset(
    map(
        int,
        [
            "1",
            "7",
            "11",
            "13",
            "15",
            "17",
            "19",
            "20",
            "21",
            "22",
            "23",
            "25",
            "37",
            "42",
            "43",
            "53",
            "69",
            "77",
            "79",
            "87",
            "95",
            "101",
            "102",
            "103",
            "104",
            "109",
            "110",
            "111",
            "113",
            "115",
            "117",
            "119",
            "123",
            "135",
            "137",
            "139",
            "143",
            "161",
            "179",
            "389",
            "427",
            "445",
            "465",
            "512",
            "513",
            "514",
            "515",
            "526",
            "530",
            "531",
            "532",
            "540",
            "548",
            "554",
            "556",
            "563",
            "587",
            "601",
            "636",
            "873",
            "989",
            "990",
            "993",
            "995",
            "1433",
            "1434",
            "1521",
            "1719",
            "1720",
            "1723",
            "1883",
            "2049",
            "2181",
            "2375",
            "2376",
            "2377",
            "2379",
            "2380",
            "2483",
            "2484",
            "3128",
            "3268",
            "3269",
            "3306",
            "3389",
            "3659",
            "4045",
            "4190",
            "4369",
            "5060",
            "5061",
            "5432",
            "5433",
            "5671",
            "5672",
            "5900",
            "5901",
            "5984",
            "5985",
            "5986",
            "6000",
            "6379",
            "6380",
            "6443",
            "6566",
            "6665",
            "6666",
            "6667",
            "6668",
            "6669",
            "6679",
            "6697",
            "7000",
            "7001",
            "7199",
            "8086",
            "8125",
            "8300",
            "8301",
            "8302",
            "8500",
            "8501",
            "8600",
            "9000",
            "9042",
            "9092",
            "9093",
            "9100",
            "9160",
            "9200",
            "9300",
            "9418",
            "10080",
            "10250",
            "10255",
            "10256",
            "11211",
            "15672",
            "16379",
            "25672",
            "26257",
            "26379",
            "27017",
            "27018",
            "27019",
        ],
    )
)
_DIGITS = re.compile(r"[0-9.]+")
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy for outbound calls, and its credentials."""

    host: str
    port: int
    #: The `Proxy-Authorization` header; empty = none.
    authorization: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """The allowed outbound calls. The default: https to public addresses."""

    #: True if calls may use plain http.
    http: bool = False
    #: True if calls to this machine are allowed, also by plain http. For development.
    loopback: bool = False
    #: Allowed networks that are not public.
    networks: tuple[IPNetwork, ...] = ()
    #: Allowed names, whose addresses are not checked. With a leading dot, all names below.
    names: frozenset[str] = frozenset()
    ports: frozenset[int] = field(default=frozenset(), repr=False)
    proxy: Proxy | None = None

    @classmethod
    def read(
        cls,
        *,
        http: bool = False,
        loopback: bool = False,
        allowed: str = "",
        ports: str = PORTS,
        proxy: str = "",
    ) -> OutboundPolicy:
        """Read a policy from texts. Raises ValueError that names the mistake.

        `allowed` lists networks and names, `ports` lists numbers and ranges, separated by commas; `proxy` is a URL.
        """
        entries = [entry.strip() for entry in allowed.split(",") if entry.strip()]
        networks = {entry: _network(entry) for entry in entries}
        return cls(
            http=http,
            loopback=loopback,
            networks=tuple(network for network in networks.values() if network),
            names=frozenset(_name(entry) for entry, network in networks.items() if not network),
            ports=frozenset(_ports(ports)),
            proxy=_proxy(proxy) if proxy else None,
        )

    def allows_name(self, name: str) -> bool:
        """Return whether the operator allows the name, or one above it."""
        return any(name == own or (own[0] == "." and name.endswith(own)) for own in self.names)

    def allows(self, address: IPAddress) -> bool:
        """Return whether the address is in an allowed network, even if it is not public."""
        near = (*self.networks, *LOOPBACK) if self.loopback else self.networks
        return any(address in network for network in near)


def _network(entry: str) -> IPNetwork | None:
    """Return the network; None if the entry must be a name. A network with host bits is a mistake."""
    if not (_DIGITS.fullmatch(entry) or ":" in entry or "/" in entry):
        return None
    try:
        return ipaddress.ip_network(entry)
    except ValueError as fault:
        raise ValueError(f"{entry!r} is no network: {fault}") from None


def _name(entry: str) -> str:
    try:
        return "." * entry.startswith(".") + name_of(entry.removeprefix("."))
    except AddressRefused:
        raise ValueError(f"{entry!r} is neither a network nor a host's name") from None


def _ports(text: str) -> Iterator[int]:
    for entry in filter(None, map(str.strip, text.split(","))):
        found = _PORTS.fullmatch(entry)
        if found is None:
            raise ValueError(f"{entry!r} is neither a port nor a range of ports")
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 < first <= last <= LAST_PORT:
            raise ValueError(f"{entry!r} is not within 1-{LAST_PORT}")
        yield from (n for n in range(first, last + 1) if n not in SERVICES or not found[2])


def _proxy(url: str) -> Proxy:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_proxy() from None
    if parts.scheme != "http" or not parts.hostname or port is None or parts.path not in {"", "/"}:
        raise _no_proxy()
    if parts.username is None:
        return Proxy(parts.hostname, port)
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return Proxy(parts.hostname, port, "Basic " + base64.b64encode(credentials).decode())


def _no_proxy() -> ValueError:
    """Return the error for an invalid proxy, without its text, which may contain a password."""
    return ValueError("the proxy must be http://host:port, with user:password@ if need be")
