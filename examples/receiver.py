"""A receiver of webhooks on this machine: `python -m examples.receiver [PORT]` verifies and prints notifications.

RECEIVER_SECRET is the `whsec_` secret that clients register as the `token` of their webhooks, or that the host made for
this receiver (`manage.py webhook_keys`). Without it a secret is generated and shown.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections import deque
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

#: Larger than any notification of the host, which has at most 1 MiB.
MAX_BODY_BYTES = 2 * 1024 * 1024


class Receiver(ThreadingHTTPServer):
    """The server, on 127.0.0.1; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, port: int, secret: str) -> None:
        self.webhook = Webhook(secret)
        #: A notification may come twice with one id. Keep the ids in your database, not in memory.
        self.seen_ids: deque[str] = deque(maxlen=1000)
        super().__init__(("127.0.0.1", port), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = 30

    def do_POST(self) -> None:
        """Answer 2xx only for notifications that were verified and stored; the host repeats all others."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self.send_error(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
            self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self.receive(self.rfile.read(int(length)))

    def receive(self, body: bytes) -> None:
        try:
            notification = self.server.webhook.verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):  # ValueError: malformed
            self.send_error(HTTPStatus.UNAUTHORIZED)
            return
        webhook_id = self.headers["webhook-id"]
        again = " (again)" if webhook_id in self.server.seen_ids else ""
        self.server.seen_ids.append(webhook_id)
        sys.stdout.write(f"{webhook_id}{again} {json.dumps(notification)}\n")
        sys.stdout.flush()
        self.send_response(HTTPStatus.NO_CONTENT)
        self.end_headers()


def main() -> None:
    """Receive until interrupted."""
    made = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    secret = os.environ.get("RECEIVER_SECRET", "")
    port = int(sys.argv[1]) if sys.argv[1:] else 9000
    with Receiver(port, secret or made) as receiver:
        sys.stdout.write(f"Receiving at http://127.0.0.1:{receiver.server_port}/\n")
        if not secret:
            sys.stdout.write(f"Register it with the token {made}\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            receiver.serve_forever()


if __name__ == "__main__":
    main()
