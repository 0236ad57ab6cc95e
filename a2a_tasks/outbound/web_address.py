"""Strict parsing of URLs, so that no other parser can find another host in the text.

Forms that browsers repair (WHATWG URL §4.4) are refused: numbers that mean an IPv4 address, escapes and look-alikes in
hosts, backslashes, credentials. An accepted URL has one spelling, which is resolved, dialled and sent.
"""

from __future__ import annotations

import ipaddress
import re
import string
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote

import idna

from a2a_tasks.outbound.faults import AddressRefused

__all__ = ["MAX_LENGTH", "IPAddress", "WebAddress", "name_of", "parse"]

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Most characters of a URL, and of a host's name (RFC 1035 §2.3.4).
MAX_LENGTH, MAX_NAME_LENGTH = 2048, 253
DEFAULT_PORTS = {"http": 80, "https": 443}
LAST_PORT = 65535
#: Unicode categories of control, invisible, unpaired and space characters: parsers disagree about them.
UNREADABLE = {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*+)([^?#]*+)(\?[^#]*+)?(?:#.*)?")
_IN_BRACKETS = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?")
_NAMED = re.compile(r"([^:\[\]]+)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
#: The last label of a name that inet_aton(3) and browsers would take for an IPv4 address.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
#: Characters that are kept in path and query; all others are percent-encoded.
_AS_IT_IS = "".join(set(string.printable) - set(string.whitespace) - set('"<>`{}'))


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A parsed URL in canonical spelling."""

    scheme: str
    #: A name in ASCII, or an IP address without brackets.
    host: str
    port: int
    #: Path and query, in ASCII (the origin-form of RFC 9112 §3.2.1).
    path: str
    #: The host, if it is an IP address.
    literal: IPAddress | None

    @property
    def authority(self) -> str:
        """Return the value of the `Host` header: host and port, without the default port of the scheme."""
        return self.bare if self.port == DEFAULT_PORTS[self.scheme] else f"{self.bare}:{self.port}"

    @property
    def bare(self) -> str:
        """Return the host as it is written in URLs."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def parse(url: str) -> WebAddress:
    """Parse an absolute http or https URL; its fragment is dropped. Raises AddressRefused."""
    if len(url) > MAX_LENGTH:
        raise AddressRefused(f"must have at most {MAX_LENGTH} characters")
    if "\\" in url or any(unicodedata.category(char) in UNREADABLE for char in url):
        raise AddressRefused("must not hold white space, control characters or backslashes")
    found = _URL.fullmatch(url)
    if found is None or found[1].lower() not in DEFAULT_PORTS:
        raise AddressRefused("must be an absolute http or https URL with a host")
    scheme, authority = found[1].lower(), found[2]
    if "@" in authority:
        raise AddressRefused("must not hold credentials")
    host, port, literal = _host_and_port(authority)
    path = quote((found[3] or "/") + (found[4] or ""), safe=_AS_IT_IS)
    return WebAddress(scheme, host, _port(port, scheme), path, literal)


def _port(text: str | None, scheme: str) -> int:
    port = DEFAULT_PORTS[scheme] if text is None else int(text)
    if not 0 < port <= LAST_PORT:
        raise AddressRefused(f"must have a port from 1 to {LAST_PORT}")
    return port


def _host_and_port(authority: str) -> tuple[str, str | None, IPAddress | None]:
    if found := _IN_BRACKETS.fullmatch(authority):
        literal = _v6(found[1])
        return str(literal), found[2], literal
    found = _NAMED.fullmatch(authority)
    if found is None:
        raise AddressRefused("must have a host, and a port in digits if any")
    named = _v4(found[1])
    return (str(named), found[2], named) if named else (name_of(found[1]), found[2], None)


def _v6(text: str) -> IPAddress:
    try:
        return ipaddress.IPv6Address(text)
    except ValueError:
        raise AddressRefused("must have an IPv6 address between the brackets") from None


def _v4(text: str) -> IPAddress | None:
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        return None


def name_of(host: str) -> str:
    """Return a host name in lower-case ASCII (IDNA 2008). Raises AddressRefused."""
    if len(host) > MAX_LENGTH:  # before `idna`, which needs the square of its length
        raise AddressRefused(f"must have a host of at most {MAX_NAME_LENGTH} characters")
    labels = unicodedata.normalize("NFC", host.lower()).split(".")
    name = ".".join(map(_label, labels))
    if len(name) > MAX_NAME_LENGTH:
        raise AddressRefused(f"must have a host of at most {MAX_NAME_LENGTH} characters")
    if _NUMBER.fullmatch(labels[-1]):
        raise AddressRefused("must have IPv4 addresses as four decimal numbers")
    return name


def _label(label: str) -> str:
    if label.isascii() and not label.startswith("xn--"):
        if _LABEL.fullmatch(label):
            return label
    else:
        try:
            return idna.alabel(label).decode()
        except UnicodeError:  # IDNAError is a subclass
            pass
    raise AddressRefused("must have a host of letters, digits and hyphens between single dots")
