"""The guard of outbound calls: it decides whether a URL may be called, and at which addresses.

It has two steps. `check`, when a URL is submitted, reads the text alone: the addresses of a name may change later, and
resolving it would reveal to the submitter which internal names exist. `resolve`, before every call, resolves once and
checks every address; only these addresses are dialled, so none can change between the check and the call.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from a2a_tasks.outbound.faults import AddressRefused, FaultKind, NameNotResolved
from a2a_tasks.outbound.networks import LOOPBACK, is_public
from a2a_tasks.outbound.policy import SERVICES, OutboundPolicy, Proxy
from a2a_tasks.outbound.resolver import Resolve, SystemResolver
from a2a_tasks.outbound.web_address import IPAddress, WebAddress, parse

__all__ = ["Guard", "Target"]

#: Most addresses of a name; a name with more is refused.
MAX_ANSWERS = 64
NOT_PUBLIC = "must not lead to a private or reserved address"
#: The addresses of "localhost", which is never resolved (RFC 6761 §6.3).
OWN = tuple(ipaddress.ip_address(address) for address in ("127.0.0.1", "::1"))
#: Suffixes of names that are never public: RFC 6761, 6762, 8375, and those that ICANN does not delegate.
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
#: The default resolver; its threads are shared by the process.
_system = SystemResolver()


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a call: only these addresses, in this order."""

    address: WebAddress
    #: Addresses of the host, or of the proxy if there is one.
    addresses: tuple[IPAddress, ...]
    proxy: Proxy | None = None

    @property
    def port(self) -> int:
        """Return the port to dial."""
        return self.proxy.port if self.proxy else self.address.port


class Guard:
    """A check of URLs by a policy."""

    def __init__(self, policy: OutboundPolicy, resolve: Resolve = _system) -> None:
        self.policy = policy
        self._resolve = resolve

    def check(self, url: str) -> WebAddress:
        """Parse a URL and check its text, without resolving its name. Raises AddressRefused."""
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
        """Return the target of a call to this URL now. Raises AddressRefused, NameNotResolved."""
        address = self.check(url)
        proxy = self.policy.proxy
        if proxy is not None:
            return Target(address, await self._of_the_proxy(proxy), proxy)
        if address.literal is not None:
            return Target(address, (address.literal,))
        return Target(address, await self.resolve_name(address.host))

    async def resolve_name(self, name: str) -> tuple[IPAddress, ...]:
        """Return the addresses at which a name may be called now; of the proxy's name, all of them.

        Raises AddressRefused, NameNotResolved.
        """
        proxy = self.policy.proxy
        if proxy is not None and name == proxy.host:
            return await self._of_the_proxy(proxy)
        if self.policy.loopback and _is_localhost(name):
            return OWN
        answers = await self._resolve_name(name)
        if not self.policy.allows_name(name):
            for answer in answers:
                self._judge(answer)
        return answers

    def _is_own(self, address: WebAddress) -> bool:
        """Return whether this is an address or name of this machine's loopback, and the policy allows it."""
        if not self.policy.loopback:
            return False
        if address.literal is not None:
            return any(address.literal in network for network in LOOPBACK)
        return _is_localhost(address.host)

    def _has_port(self, address: WebAddress) -> bool:
        """Return whether the port is allowed. On this machine, if it is allowed, all ports are but those of SERVICES."""
        return address.port in self.policy.ports or (
            self._is_own(address) and address.port not in SERVICES
        )

    def _judge(self, address: IPAddress) -> None:
        if not (self.policy.allows(address) or is_public(address)):
            raise AddressRefused(NOT_PUBLIC, str(address))

    def _judge_name(self, name: str) -> None:
        if self.policy.allows_name(name) or (self.policy.loopback and _is_localhost(name)):
            return
        if "." not in name or name.endswith(INSIDE):
            raise AddressRefused(NOT_PUBLIC, name)

    async def _of_the_proxy(self, proxy: Proxy) -> tuple[IPAddress, ...]:
        try:
            return await self._resolve_name(proxy.host)
        except NameNotResolved as fault:
            raise NameNotResolved(f"the proxy: {fault.detail}", FaultKind.HOST) from None

    async def _resolve_name(self, name: str) -> tuple[IPAddress, ...]:
        answers = await self._resolve(name)
        if not 0 < len(answers) <= MAX_ANSWERS:
            raise NameNotResolved(f"{name}: {len(answers)} addresses")
        return _read(name, answers)


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _read(name: str, answers: Sequence[str]) -> tuple[IPAddress, ...]:
    try:
        return tuple(ipaddress.ip_address(answer.partition("%")[0]) for answer in answers)
    except ValueError:
        raise NameNotResolved(f"{name}: an answer is no address") from None
