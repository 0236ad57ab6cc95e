"""The clients of the table in docs/reference/known-clients.md, with their defaults, at a host as `make run` starts it and at the stack behind `deploy/nginx`.

Each is found by its card, and speaks over every binding it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from lab.clients.known import KNOWN, Known
from lab.clients.programs.environments import NODE, Unavailable
from lab.clients.published import Say, Told
from lab.server.nginx import NAME, Nginx
from tests import backend
from tests.journeys.hosts import embedded, host
from tests.support.ports import free_port

#: The first run makes the environments.
pytestmark = pytest.mark.timeout(1200)
#: How many clients talk at once: they wait more than they work.
AT_ONCE = 3
#: Where programs look for certificates: OpenSSL and httpx, grpc, node.
TRUST = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NODE_EXTRA_CA_CERTS",
)


@dataclass(frozen=True)
class Site:
    """A host as clients see it: its URL, what its cards name for gRPC, and the environment of clients."""

    url: str
    grpc: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def one_process() -> Iterator[Site]:
    """The host of `make run`. Its cards do not name gRPC."""
    with embedded({"A2A_GRPC_PORT": str(free_port())}) as web:
        yield Site(web.url)


@contextmanager
def behind_nginx() -> Iterator[Site]:
    """The stack behind the shipped nginx, with the settings of its README and TLS of an authority of the test."""
    port = free_port()
    url = f"https://{NAME}:{port}"
    settings = {
        "A2A_PUBLIC_URL": url,
        "ALLOWED_HOSTS": NAME,
        "TRUSTED_PROXIES": "127.0.0.1",
        "SECURE_SSL_REDIRECT": "1",
        "SECURE_HSTS_SECONDS": "31536000",
        "A2A_GRPC_URL": url,
        "A2A_GRPC_CONNECTIONS_PER_ADDRESS": "0",
    }
    with (
        host(settings, grpc=True) as made,
        Nginx(int(made.here.rpartition(":")[2]), made.grpc, port) as proxy,
    ):
        yield Site(url, url, dict.fromkeys(TRUST, str(proxy.authority)))


#: What a test is marked with, by the topology of its backend.
TOPOLOGIES = {
    "at one process": [pytest.mark.backend("sqlite")],
    "behind nginx": [pytest.mark.backend("stack"), pytest.mark.nginx],
}


@pytest.fixture(scope="module")
def site(emptied: None) -> Iterator[Site]:
    """The host of this backend."""
    begun = behind_nginx if backend.backend() == backend.STACK else one_process
    with begun() as made:
        yield made


def talk(known: Known, site: Site, say: Say) -> Told:
    """What went wrong, by binding and check."""
    agent = f"{site.url}/agents/demo"
    old = known.client.version == "0.2"
    card = f"{agent}/.well-known/{'agent' if old else 'agent-card'}.json"
    # The old name of the card sends clients to where it is seen what they speak.
    endpoint = f"{agent}/a2a" if old else f"{agent}/a2a/{known.client.version}"
    environ = {**site.environ, "DEFAULTS": "1", "CREWAI_DISABLE_TELEMETRY": "true"}
    client = replace(known.client, bindings=bindings(known, site))
    try:
        return client.converse(say, known.checks, card, endpoint, environ=environ)
    except Unavailable as why:
        return dict.fromkeys(cases(known), f"The environment cannot be made: {why}")


def bindings(known: Known, site: Site) -> tuple[str, ...]:
    """What it may speak there."""
    return tuple(b for b in known.client.bindings if b != "GRPC" or site.grpc)


def cases(known: Known) -> list[tuple[str, str]]:
    """A binding and a check each. For gRPC cards name no address of an agent."""
    found = itertools.product(known.client.bindings, known.checks)
    return [case for case in found if case != ("GRPC", "card_names_the_dialect")]


@pytest.fixture(scope="module")
def told(site: Site, say: Say, request: pytest.FixtureRequest) -> Iterator[Callable[[Known], Told]]:
    """What each client tells of the site. All whose tests are run begin when the first is asked for."""
    found = [getattr(item, "callspec", None) for item in request.session.items]
    asked = [each.params["known"] for each in found if each and "known" in each.params]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        talks: dict[str, Future[Told]] = {
            known.name: pool.submit(talk, known, site, say)
            for known in KNOWN
            if known in asked and not (known.client.javascript and NODE)
        }
        yield lambda known: talks[known.name].result()


def excused(known: Known) -> list[pytest.MarkDecorator]:
    """On a machine without node: not run, and shown among the results."""
    needs_node = known.client.javascript and NODE
    return [pytest.mark.xfail(run=False, reason=NODE)] if needs_node else []


def met(case: tuple[str, str]) -> list[str]:
    """The topologies at which a client has a binding."""
    return ["behind nginx"] if case[0] == "GRPC" else list(TOPOLOGIES)


@pytest.mark.parametrize(
    ("known", "case"),
    [
        pytest.param(
            known,
            case,
            id=" ".join((known.name, *case, topology)),
            marks=[*TOPOLOGIES[topology], *excused(known)],
        )
        for known in KNOWN
        for case in cases(known)
        for topology in met(case)
    ],
)
def test_a_known_client_does_what_the_table_says(
    told: Callable[[Known], Told], known: Known, case: tuple[str, str]
) -> None:
    why, fault = told(known)[case], known.faults.get(case, "")
    if fault:
        assert fault in why
    else:
        assert not why, why
