"""A host of one command, for the drill of rotating its key: `make` writes what hangs on the key, `look` says what still works.

It is run as a process of its own, so that the key comes from the environment, as an operator sets it. Django is set up
before this module is imported.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.management import call_command

from a2a_console.audit import proof as audit_proof
from a2a_push import keys as webhook_keys
from a2a_push.keyring import audience_of
from a2a_push.store import configs
from a2a_tasks import sealing
from a2a_tasks.agents import registry
from a2a_tasks.agents.cards import card_of
from a2a_tasks.checks import check_sealed_secrets
from a2a_tasks.signatures import ring
from a2a_tasks.signatures.verification import CardUnverified, verify
from a2a_tasks.store import audit_seals, file_links, handed_secrets
from tests.support.push.configs import URL, config, registered
from tests.support.store.world import accepted, held

BASE, FILE = "https://agents.example.com", "0" * 32
RECEIVER = audience_of("", URL)


def make() -> dict[str, Any]:
    """One of everything that is sealed, signed or made with the key."""
    call_command("migrate", verbosity=0)
    task = accepted().task
    registered()
    run = held("task-2")
    link = handed_secrets.ask(run, ("token",), "why")
    assert link is not None
    handed_secrets.keep_values(link.token, {"token": "handed"})(run.task)
    if settings.SIGN_IN_EXTRA:
        _make_factors()
    audit_seals.seal_all()
    agent = registry.find("demo")
    assert agent is not None
    return {
        "task": task,
        "run": {name: getattr(run, name) for name in ("task", "task_id", "token", "input_number")},
        "url": file_links.make_linker("demo", BASE, "")(FILE),
        "card": ring.seal().on(card_of(agent, BASE), "v10", BASE),
        "secret": str(webhook_keys.ring().secrets(RECEIVER)[0].raw.hex()),
    }


def look(made: dict[str, Any]) -> dict[str, Any]:
    """What of it still works, and what the check of a deployment says."""
    run: Any = SimpleNamespace(**made["run"])
    published = [key.as_dict(private=False) for key in ring.list_published()]
    url = urlsplit(made["url"])
    expires, signature = (parse_qs(url.query)[name][0] for name in ("expires", "signature"))
    secrets = webhook_keys.ring().secrets(RECEIVER)
    found = {
        "webhook": _holds(lambda: configs.with_secrets(made["task"])[0][1] == config()),
        "handed": handed_secrets.read(run) == {"token": "handed"},
        "url": file_links.is_signed("demo", FILE, expires, signature, ""),
        "seals": _holds(lambda: list(audit_proof.verify())),
        "card": _holds(lambda: verify(made["card"], published, now=time.time())),
        "receiver": made["secret"] in [secret.raw.hex() for secret in secrets],
    }
    if settings.SIGN_IN_EXTRA:
        found["factors"] = _holds(_factors_open)
    return {"works": found, "said": [message.msg for message in check_sealed_secrets()]}


def _make_factors() -> None:
    from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes  # noqa: PLC0415 - an extra
    from allauth.mfa.totp.internal.auth import TOTP  # noqa: PLC0415
    from django.contrib.auth.models import User  # noqa: PLC0415

    alice = User.objects.create_user("alice")
    TOTP.activate(alice, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(alice)


def _factors_open() -> bool:
    from allauth.mfa.models import Authenticator  # noqa: PLC0415 - an extra

    totp = Authenticator.objects.get(type=Authenticator.Type.TOTP)
    codes = Authenticator.objects.get(type=Authenticator.Type.RECOVERY_CODES)
    told = sealing.unseal(totp.data["secret"]) == "JBSWY3DPEHPK3PXP"
    return told and bool(codes.wrap().generate_codes())


def _holds(asked: Callable[[], object]) -> bool:
    try:
        return bool(asked())
    except (sealing.Unsealable, audit_proof.Broken, CardUnverified):
        return False


def main() -> None:
    """Do what the first argument names; `look` reads on standard input what `make` wrote."""
    said = make() if sys.argv[1] == "make" else look(json.load(sys.stdin))
    sys.stdout.write(json.dumps(said))
