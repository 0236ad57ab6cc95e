"""`python -m examples.receiver`: receive webhooks on this machine, and show them on a page."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence

from examples.receiver.proofs import HostKeys, Key, Proofs, fetched
from examples.receiver.server import Receiver

__all__ = ["main"]

HELP = """\
Webhooks of A2A are received at any path, and shown at /. What they must prove comes by the environment, where other users of
this machine do not see it: RECEIVER_KEYS, keys of Standard Webhooks (whsec_, whpk_) with spaces between; RECEIVER_TOKEN, the token you
register. With --host, they must carry a token of that host. With nothing of it, a secret is made, and shown."""
AGENT = "http://127.0.0.1:8000/agents/demo"


def main(arguments: Sequence[str] | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Receive until interrupted."""
    options = parser().parse_args(arguments)
    receiver = made(options, environ)
    try:
        receiver.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        receiver.server_close()


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    known = argparse.ArgumentParser(prog="python -m examples.receiver", description=HELP)
    known.add_argument("--port", type=int, default=9000, help="of 127.0.0.1; default 9000")
    known.add_argument(
        "--origin", default="", help="the origin of the URLs you register, if there is a proxy"
    )
    known.add_argument("--host", default="", help="URL of the host whose tokens are asked for")
    return known


def made(options: argparse.Namespace, environ: Mapping[str, str]) -> Receiver:
    """The receiver, listening; it has said how to try it."""
    texts, token = environ.get("RECEIVER_KEYS", "").split(), environ.get("RECEIVER_TOKEN", "")
    own = "" if texts or token or options.host else new_secret()
    try:
        keys = tuple(map(Key.read, [*texts, *filter(None, [own])]))
    except ValueError as flaw:
        sys.exit(f"RECEIVER_KEYS: {flaw}")
    host = HostKeys(lambda: fetched(options.host)) if options.host else None
    origin = options.origin.rstrip("/") or f"http://127.0.0.1:{options.port}"
    asked = {"a signature": keys, "the token": token, "a token of the host": host}
    asks = ", ".join(name for name, known in asked.items() if known)
    receiver = Receiver(
        options.port, Proofs(keys=keys, token=token, host=host, origin=origin), asks
    )
    say(receiver.server_port, own or token)
    return receiver


def new_secret() -> str:
    """A secret of Standard Webhooks, to be registered as the token: the host then signs with it."""
    return "whsec_" + base64.b64encode(os.urandom(32)).decode()


def say(port: int, token: str) -> None:
    """Where the page is, and a line that has the demo agent send something."""
    config = {"url": f"http://127.0.0.1:{port}/hook", **({"token": token} if token else {})}
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "chunks 5 2"}]}
    body = json.dumps({"message": message, "configuration": {"taskPushNotificationConfig": config}})
    sys.stdout.write(
        f"Webhooks are shown at http://127.0.0.1:{port}/\n\n"
        "With a host on this machine (A2A_WEBHOOK_ALLOW_PRIVATE=1 make run), this has one sent:\n\n"
        f"curl -s {AGENT}/message:send -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' -d {shlex.quote(body)}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
