"""IP networks outside the public internet, from the IANA special-purpose registries (RFC 6890) and the notes below."""

from __future__ import annotations

import ipaddress

from a2a_tasks.outbound.web_address import IPAddress

__all__ = ["LOOPBACK", "IPNetwork", "is_public"]

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOPBACK: tuple[IPNetwork, ...] = (
    ipaddress.IPv4Network("127.0.0.0/8"),
    ipaddress.IPv6Network("::1/128"),
)

#: Special networks, listed here since the results of `is_global` change with Python's patch releases.
SPECIAL_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network; Linux treats it as itself
            "10.0.0.0/8",  # private, RFC 1918
            "100.64.0.0/10",  # carrier-grade NAT, RFC 6598; Alibaba's metadata
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # Azure's platform service: a public address that the machine's own host answers
            "169.254.0.0/16",  # link-local; the metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments, RFC 6890; Oracle's metadata
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays, RFC 7526
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
#: All routed addresses (RFC 4291 §2.4). All others are special: mapped, ULA, link-local, site-local, multicast ...
UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
SPECIAL_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: an IPv4 address behind a relay, of which none runs any more
            "2620:4f:8000::/48",  # AS112
            "3ffe::/16",  # the former 6bone
            "3fff::/20",  # documentation, RFC 9637
        ),
    )
)
#: IPv4 addresses behind the NAT64 of a network without IPv4 (RFC 6052 §2.1): its DNS returns such addresses by design.
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: IPAddress) -> bool:
    """Return whether the address is on the public internet, and in no special network."""
    if address.version == 4:  # noqa: PLR2004 - IP's
        return address.is_global and not any(address in network for network in SPECIAL_V4)
    if address in NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    special = any(address in network for network in SPECIAL_V6)
    return address in UNICAST_V6 and address.is_global and not special
