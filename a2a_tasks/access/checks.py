"""System checks of the authentication settings: errors in the environment, and warnings for the operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004

from a2a_tasks.access import credentials, issuer, tokens
from a2a_tasks.agents.security import allows_anonymous, is_scope, list_accepted
from a2a_tasks.conf import conf, project
from a2a_tasks.outbound import Unanswered, make_tls_context
from a2a_tasks.rates import read_rate

__all__ = ["check_callers"]

SWITCHES = "A2A_API_KEYS=1, A2A_JWT_ISSUER, A2A_BASIC=1 and A2A_MTLS_PEERS let callers in."


@register()
def check_callers(**_: Any) -> Iterable[CheckMessage]:
    """Check the settings of the enabled schemes, the rates and the metrics."""
    try:
        return [*_openness(), *_tokens(), *_certificates(), *_rates(), *_metrics()]
    except ValueError:  # an invalid setting, which another check reports
        return []


def _openness() -> Iterable[CheckMessage]:
    if allows_anonymous() and not project.A2A_EMBEDDED:
        yield Warning(
            "A2A_ANONYMOUS is on: everyone who can reach this host may use its agents",
            hint="Unset it unless callers may be anonymous.",
            id="a2a_tasks.W021",
        )
    if not allows_anonymous() and not list_accepted(None):
        yield Warning("no caller can use this host", hint=SWITCHES, id="a2a_tasks.W022")


def _tokens() -> Iterable[CheckMessage]:
    if not conf.JWT_ISSUER:
        return
    try:
        tokens.algorithms()
    except ValueError as fault:
        yield Error(f"A2A_JWT_ALGORITHMS: {fault}", id="a2a_tasks.E024")
    if not (conf.JWT_AUDIENCE or conf.PUBLIC_URL):
        yield Error(
            "A2A_JWT_ISSUER is set, but no audience of its tokens",
            hint="Set A2A_JWT_AUDIENCE, or A2A_PUBLIC_URL: a token for another audience must not open this host.",
            id="a2a_tasks.E025",
        )
    try:
        issuer.guard(conf.JWT_ISSUER, conf.JWT_JWKS_URL)
    except (Unanswered, ValueError) as fault:
        yield Error(
            f"the keys of the issuer of tokens cannot be fetched: {fault}",
            hint="A2A_JWT_ISSUER and A2A_JWT_JWKS_URL are https URLs; A2A_JWT_PROXY is http://host:port.",
            id="a2a_tasks.E026",
        )
    try:
        make_tls_context(conf.JWT_CA_BUNDLE)
    except OSError as fault:
        yield Error(f"A2A_JWT_CA_BUNDLE cannot be read: {fault}", id="a2a_tasks.E027")


def _rates() -> Iterable[CheckMessage]:
    for name in ("PER_CALLER", "PER_TENANT", "PER_AGENT", "WRONG_CREDENTIALS"):
        try:
            read_rate(getattr(conf, f"RATE_{name}"))
        except ValueError as fault:
            yield Error(f"A2A_RATE_{name}: {fault}", id="a2a_tasks.E042")
    if conf.BASIC and not str(conf.RATE_WRONG_CREDENTIALS).strip():
        yield Warning(
            "A2A_BASIC is on, and an address may try any number of passwords",
            hint="Set A2A_RATE_WRONG_CREDENTIALS, such as 5/s burst 100.",
            id="a2a_tasks.W042",
        )


def _metrics() -> Iterable[CheckMessage]:
    try:
        credentials.networks(conf.METRICS_PEERS)
    except ValueError as fault:
        yield Error(f"A2A_METRICS_PEERS: {fault}", id="a2a_tasks.E030")


def _certificates() -> Iterable[CheckMessage]:
    try:
        credentials.networks(conf.MTLS_PEERS)
    except ValueError as fault:
        yield Error(f"A2A_MTLS_PEERS: {fault}", id="a2a_tasks.E028")
    wrong = [scope for scope in str(conf.MTLS_SCOPES).split() if not is_scope(scope)]
    if wrong:
        yield Error(f"A2A_MTLS_SCOPES: {wrong[0]!r} cannot be a scope", id="a2a_tasks.E029")
