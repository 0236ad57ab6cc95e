"""The guard of the way out: may this URL be called, and at which addresses?

Asked twice. `check`, when a URL is handed in, looks at the text alone: what a name resolves to now says nothing about
later, and would tell who asks which names exist inside. `resolve`, before every call, resolves once and judges every
answer; only the addresses it returns are dialled, so nothing can change between the look and the call.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from a2a_tasks.outbound.faults import AddressRefused, Kind, NameNotResolved
from a2a_tasks.outbound.networks import LOOPBACK, is_public
from a2a_tasks.outbound.policy import SERVICES, Policy, Proxy
from a2a_tasks.outbound.resolver import Resolve, SystemResolver
from a2a_tasks.outbound.web_address import IPAddress, WebAddress, parse

__all__ = ["Guard", "Target"]

#: A name with more addresses than this is none of a service.
MOST_ANSWERS = 64
NOT_PUBLIC = "must not lead to a private or reserved address"
#: Where "localhost" is, whatever a resolver says (RFC 6761 §6.3).
OWN = tuple(ipaddress.ip_address(address) for address in ("127.0.0.1", "::1"))
#: Ends of names that are never public: RFC 6761, 6762, 8375, and what ICANN keeps from being delegated.
INSIDE = tuple(
    f".{name}"
    for name in [
        "localhost",
        "localdomain",
        "local",
        "internal",
        "intranet",
        "private",
        "corp",
        "home",
        "home.arpa",
        "lan",
        "mail",
        "invalid",
        "onion",
    ]
)
#: Resolves for everybody who brings no resolver; its threads are the process's.
_system = SystemResolver()


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes: these addresses and no others, in this order."""

    address: WebAddress
    #: Of the host; of the proxy, if there is one.
    addresses: tuple[IPAddress, ...]
    proxy: Proxy | None = None

    @property
    def port(self) -> int:
        """The port to dial."""
        return self.proxy.port if self.proxy else self.address.port


class Guard:
    """Judges URLs by a policy."""

    def __init__(self, policy: Policy, resolve: Resolve = _system) -> None:
        self.policy = policy
        self._resolve = resolve

    def check(self, url: str) -> WebAddress:
        """The URL, read, if nothing about its text forbids to call it. Asks nobody. Raises AddressRefused."""
        address = parse(url)
        if address.literal is not None:
            self._judge(address.literal)
        else:
            self._judge_name(address.host)
        if address.scheme == "http" and not (self.policy.http or self._is_own(address)):
            raise AddressRefused("must be an https URL")
        if not self._has_port(address):
            raise AddressRefused("must not have this port")
        return address

    async def resolve(self, url: str) -> Target:
        """Where to call this URL now. Raises AddressRefused, NameNotResolved."""
        address = self.check(url)
        proxy = self.policy.proxy
        if proxy is not None:
            return Target(address, await self._of_the_proxy(proxy), proxy)
        if address.literal is not None:
            return Target(address, (address.literal,))
        if self._is_own(address):
            return Target(address, OWN)
        answers = await self._asked(address.host)
        if not self.policy.names_allowed(address.host):
            for answer in answers:
                self._judge(answer)
        return Target(address, answers)

    def _is_own(self, address: WebAddress) -> bool:
        """Is it this machine by its own name or address, and may that be?"""
        if not self.policy.loopback:
            return False
        if address.literal is not None:
            return any(address.literal in network for network in LOOPBACK)
        return _is_localhost(address.host)

    def _has_port(self, address: WebAddress) -> bool:
        """Is it one of the ports that are called? Of this machine itself, where that may be, any but a service's is."""
        return address.port in self.policy.ports or (
            self._is_own(address) and address.port not in SERVICES
        )

    def _judge(self, address: IPAddress) -> None:
        if not (self.policy.allows(address) or is_public(address)):
            raise AddressRefused(NOT_PUBLIC, str(address))

    def _judge_name(self, name: str) -> None:
        if self.policy.names_allowed(name) or (self.policy.loopback and _is_localhost(name)):
            return
        if "." not in name or name.endswith(INSIDE):
            raise AddressRefused(NOT_PUBLIC, name)

    async def _of_the_proxy(self, proxy: Proxy) -> tuple[IPAddress, ...]:
        try:
            return await self._asked(proxy.host)
        except NameNotResolved as fault:
            raise NameNotResolved(f"the proxy: {fault.detail}", Kind.HOST) from None

    async def _asked(self, name: str) -> tuple[IPAddress, ...]:
        answers = await self._resolve(name)
        if not 0 < len(answers) <= MOST_ANSWERS:
            raise NameNotResolved(f"{name}: {len(answers)} addresses")
        return _read(name, answers)


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _read(name: str, answers: Sequence[str]) -> tuple[IPAddress, ...]:
    try:
        return tuple(ipaddress.ip_address(answer.partition("%")[0]) for answer in answers)
    except ValueError:
        raise NameNotResolved(f"{name}: an answer is no address") from None
