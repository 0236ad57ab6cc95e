"""Attacks on the guard, as tables: each vector is a URL that must not be called. `PORT` stands for the canary's port.

Made by rules where there is a rule (spellings of an address, edges of a network), written out where there is none.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

__all__ = ["ALL", "spellings"]

LOOPBACK, METADATA = "127.0.0.1", "169.254.169.254"
VICTIMS = (LOOPBACK, METADATA, "10.0.0.1", "172.16.0.1", "192.168.0.1", "0.0.0.0", "127.255.1.2")  # noqa: S104 - none listens
SPECIAL_V4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
SPECIAL_V6 = [
    "::/128",
    "::1/128",
    "::ffff:0:0/96",
    "::ffff:0:0:0/96",
    "::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/32",
    "2001:1::/32",
    "2001:2::/48",
    "2001:3::/32",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3ffe::/16",
    "3fff::/20",
    "4000::/3",
    "5f00::/16",
    "fc00::/7",
    "fd00::/8",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]


def spellings(dotted: str) -> Iterator[str]:
    """An IPv4 address in the ways inet_aton(3), browsers and careless parsers take it, but the plain one."""
    number = int(ipaddress.IPv4Address(dotted))
    a, b, c, d = (int(part) for part in dotted.split("."))
    yield f"{number}"
    yield f"0x{number:x}"
    yield f"0X{number:08X}"
    yield f"0{number:o}"
    yield f"{number + 2**32}"
    yield f"{a}.{(b << 16) + (c << 8) + d}"
    yield f"{a}.{b}.{(c << 8) + d}"
    yield f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"
    yield f"0{a:o}.0{b:o}.0{c:o}.0{d:o}"
    yield f"0x{a:x}.{b}.0{c:o}.{d}"
    yield f"{a:03}.{b:03}.{c:03}.{d:03}"
    yield f"{a}.{b}.{c}.0{d}"
    yield f"{a + 256}.{b}.{c}.{d}"
    yield f"{dotted}."
    yield f"{number}."
    yield f"{a}.{b}..{d}"


def v4_spellings() -> Iterator[str]:
    for victim in VICTIMS:
        yield f"http://{victim}:PORT/"
        yield from (f"http://{spelt}:PORT/" for spelt in spellings(victim))


def v4_networks() -> Iterator[str]:
    for text in SPECIAL_V4:
        network = ipaddress.IPv4Network(text)
        middle = network[network.num_addresses // 2]
        yield from (f"http://{address}:PORT/" for address in (network[0], middle, network[-1]))
    yield from (f"http://{a}:PORT/" for a in ("168.63.129.16", "100.100.100.200", "192.0.0.192"))


def carriers(dotted: str) -> Iterator[str]:
    """IPv6 addresses that bring an IPv4 address along."""
    number = int(ipaddress.IPv4Address(dotted))
    high, low = number >> 16, number & 0xFFFF
    swapped = number ^ 0xFFFFFFFF
    yield f"::ffff:{dotted}"
    yield f"::ffff:{high:x}:{low:x}"
    yield f"0:0:0:0:0:FFFF:{high:x}:{low:x}"
    yield f"::{dotted}"
    yield f"::ffff:0:{dotted}"
    yield f"64:ff9b::{dotted}"
    yield f"64:ff9b:0:0:0:0:{high:x}:{low:x}"
    yield f"64:ff9b:1::{dotted}"
    yield f"2002:{high:x}:{low:x}::1"
    yield f"2001:0:4136:e378:8000:63bf:{swapped >> 16:x}:{swapped & 0xFFFF:x}"
    yield f"fe80::5efe:{dotted}"


def v6() -> Iterator[str]:
    for victim in (LOOPBACK, METADATA, "10.0.0.1", "192.168.0.1", "100.64.0.1", "240.0.0.1"):
        yield from (f"http://[{carrier}]:PORT/" for carrier in carriers(victim))
    for text in SPECIAL_V6:
        network = ipaddress.IPv6Network(text)
        yield from (f"http://[{address}]:PORT/" for address in {network[0], network[-1]})
    yield from (
        f"http://[{address}]:PORT/"
        for address in (
            "0:0:0:0:0:0:0:1",
            "0000:0000:0000:0000:0000:0000:0000:0001",
            "0::1",
            "::0:1",
            "::0.0.0.1",
            "::127.1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1%25eth0",
            "fe80::1%eth0",
            "fe80::1%lo",
            "::1%lo",
            "::1%25lo",
            "FE80::1",
            "FF02::1",
        )
    )


HOSTS = (
    # this machine's and the neighbourhood's own names
    *(
        "localhost",
        "LOCALHOST",
        "LocalHost",
        "localhost.",
        "localhost..",
        "a.localhost",
        "x.y.localhost",
    ),
    *(
        "localhost.localdomain",
        "localhost6",
        "ip6-localhost",
        "ip6-loopback",
        "loopback",
        "broadcasthost",
    ),
    *(
        "metadata",
        "metadata.google.internal",
        "instance-data",
        "kubernetes.default.svc",
        "redis",
        "postgres",
        "db",
    ),
    *(
        "host.docker.internal",
        "gateway.docker.internal",
        "printer.local",
        "router.lan",
        "nas.home.arpa",
        "a.corp",
    ),
    *("x.home", "x.intranet", "x.private", "mx.mail", "x.onion", "x.invalid"),
    # look-alikes of digits, letters and dots
    *(
        "１２７.０.０.１",
        "127。0。0。1",
        "127．0．0．1",
        "127｡0｡0｡1",
        "①②⑦.⓪.⓪.①",
        "１２７．０．０．１",
    ),
    *(
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "ｌｏｃａｌｈｏｓｔ",
        "𝐥𝐨𝐜𝐚𝐥𝐡𝐨𝐬𝐭",
        "ʟocalhost",
        "lοcalhost",
        "lосаlhost",
        "ﬁ.example",
        "loⅽalhost",
    ),
    *("०.०.०.०", "١٢٧.٠.٠.١", "127.0.0.¹", "0x7f。0.0.1", "½.example", "℀.example", "example℀.com"),
    # no name at all
    *(
        "",
        ".",
        "..",
        ".example.com",
        "example..com",
        "-a.example",
        "a-.example",
        "a_.-b",
        "*.example.com",
    ),
    *(
        "exa mple.com",
        "exa\tmple.com",
        "exa\nmple.com",
        "exa\r\nmple.com",
        "exa\x00mple.com",
        "exa\u200bmple.com",
    ),
    *(
        "exa\u00admple.com",
        "example.com\u2028",
        "\ufeffexample.com",
        "exa\ud800mple.com",
        "exa\u3000mple.com",
    ),
    *(
        "a" * 64 + ".example",
        ".".join(["a" * 60] * 5),
        "xn--",
        "xn--a",
        "xn--127-0-0-1",
        "xn--0.xn--0",
        "xn--localhost-",
    ),
    # escapes
    *(
        "127%2e0%2e0%2e1",
        "%31%32%37.0.0.1",
        "127.0.0.1%00",
        "localhost%00.example.com",
        "%6cocalhost",
        "a%2eexample",
    ),
    *(
        "example.com%23@127.0.0.1",
        "127.0.0.1%2523",
        "example.com%2f@127.0.0.1",
        "%5b::1%5d",
        "127.0.0.1%20",
    ),
    # two readers, two hosts
    *(
        "user@127.0.0.1",
        "user:password@127.0.0.1",
        "@127.0.0.1",
        "example.com@127.0.0.1",
        "127.0.0.1@example.com",
    ),
    *("a@b@127.0.0.1", ":@127.0.0.1", "example.com:80@127.0.0.1", "user%40example.com@127.0.0.1"),
    *(
        "example.com\\@127.0.0.1",
        "127.0.0.1\\example.com",
        "\\127.0.0.1",
        "example.com\\.evil.example",
    ),
    *(
        "example.com:80:90",
        "example.com:PORT:PORT",
        "127.0.0.1:80,example.com",
        "example.com,127.0.0.1",
        "a;b.example",
    ),
    *(
        "example.com$.evil",
        "example.com!",
        "{127.0.0.1}",
        "(127.0.0.1)",
        "<127.0.0.1>",
        '"127.0.0.1"',
        "'127.0.0.1'",
    ),
    # brackets
    *(
        "[]",
        "[::1",
        "::1]",
        "::1",
        "[[::1]]",
        "[::1]]",
        "[127.0.0.1]",
        "[localhost]",
        "[example.com]",
        "[::1].example",
    ),
    *(
        "[::ffff:127.0.0.1]",
        "[v1.a]",
        "[v6.::1]",
        "[:::1]",
        "[::1::]",
        "[1:2:3:4:5:6:7:8:9]",
        "[::g]",
        "[::1.2.3]",
    ),
    *(
        "127.0.0.1.",
        "1.2.3",
        "1.2.3.4.5",
        "example.1",
        "example.0x7f",
        "a.b.0",
        "0x",
        "0x7f000001",
        "7f000001h.0",
    ),
)
#: Hosts as they are, with a port behind, and the fragment that some read as the end of the host.
WHOLE = (
    "http:127.0.0.1:PORT/",
    "http:/127.0.0.1:PORT/",
    "http:///127.0.0.1:PORT/",
    "http:////127.0.0.1:PORT/",
    "http://127.0.0.1:PORT",
    "http://127.0.0.1:PORT#@example.com/",
    "http://127.0.0.1:PORT?@example.com/",
    "http://127.0.0.1:PORT/#example.com",
    "http:\\\\127.0.0.1:PORT\\",
    "http:/\\127.0.0.1:PORT/",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT/",
    "/",
    "?a",
    "#a",
    " http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/ ",
    "http ://127.0.0.1:PORT/",
    "ht\ntp://127.0.0.1:PORT/",
    "\x01http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/a b",
    "http://127.0.0.1:PORT/\r\nHost: example.com",
    "http://[::1]:PORT",
    "HTTP://LOCALHOST:PORT/",
    "hTTp://127.0.0.1:PORT/",
    "url:http://127.0.0.1:PORT/",
    "http://http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/" + "x" * 2048,
)
SCHEMES = [
    "file",
    "ftp",
    "ftps",
    "sftp",
    "tftp",
    "gopher",
    "dict",
    "ldap",
    "ldaps",
    "data",
    "javascript",
    "vbscript",
    "unix",
    "http+unix",
    "ws",
    "wss",
    "jar",
    "netdoc",
    "php",
    "phar",
    "expect",
    "ssh",
    "git",
    "svn",
    "smb",
    "nfs",
    "rtsp",
    "imap",
    "pop3",
    "smtp",
    "telnet",
    "redis",
    "postgres",
    "mysql",
    "mongodb",
    "amqp",
    "mailto",
    "tel",
    "urn",
    "about",
    "blob",
    "view-source",
    "chrome",
    "httpx",
    "shttp",
    "httpS+a",
    "s3",
    "gs",
]
SERVICE_PORTS = (
    1433, 1521, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3128, 3306, 3389, 4369, 5060, 5432, 5672, 5900, 5984, 5985, 6000,
    6379, 6443, 6667, 7001, 8086, 8500, 9000, 9042, 9092, 9200, 9300, 9418, 10250, 11211, 25672, 26379, 27017,
)  # fmt: skip
LOW_PORTS = (
    1,
    7,
    9,
    11,
    13,
    19,
    20,
    21,
    22,
    23,
    25,
    53,
    69,
    79,
    81,
    110,
    111,
    119,
    135,
    139,
    143,
    161,
    389,
    445,
    465,
    587,
)
BAD_PORTS = (
    "0",
    "00",
    "65536",
    "99999",
    "-1",
    "+80",
    "0x50",
    "8e1",
    " 80",
    "80 ",
    "８０",
    "",
    "a",
    "80a",
    "080000",
    "443:",
)


def hosts() -> Iterator[str]:
    yield from (f"http://{host}:PORT/" for host in HOSTS)
    yield from WHOLE


def schemes() -> Iterator[str]:
    for scheme in SCHEMES:
        yield f"{scheme}://127.0.0.1:PORT/"
        yield f"{scheme}:127.0.0.1"
    yield from (f"{scheme}://public.example/" for scheme in SCHEMES)


def ports() -> Iterator[str]:
    """The host could be called; at these ports it is not."""
    yield from (
        f"https://public.example:{port}/" for port in (*SERVICE_PORTS, *LOW_PORTS, *BAD_PORTS)
    )


def injections() -> Iterator[str]:
    """What would begin another line, header or request."""
    ends = (
        "\r\n",
        "\n",
        "\r",
        "\x00",
        "\x0b",
        "\x0c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x7f",
        "\t",
        " ",
    )
    for end in ends:
        yield f"https://public.example{end}:443/"
        yield f"https://public.example/{end}X-Other: yes"
        yield f"https://public.example/?a{end}b"
        yield f"https://public.example/#{end}"


#: Every class of vectors, by its name.
ALL: dict[str, list[str]] = {
    made.__name__: list(dict.fromkeys(made()))
    for made in (v4_spellings, v4_networks, v6, hosts, schemes, ports, injections)
}
