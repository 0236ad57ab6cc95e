"""`manage.py up`: from a clone to a served host in one command. It can be repeated at any time."""

from __future__ import annotations

import json
import os
import secrets
import shlex
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connections

from a2a_project.management.commands import serve, serve_grpc
from a2a_project.management.commands.serve import Address, add_address, read_address, serve_site
from a2a_project.open_address import refuse_open_address
from a2a_tasks.agents import registry
from a2a_tasks.agents.security import allows_anonymous, sample_header
from a2a_tasks.conf import conf, project
from a2a_tasks.management.database import count_missing_migrations, explain

ADMIN = "admin"
#: Random bytes of the first password: 12 make 16 characters.
PASSWORD_BYTES = 12


class Command(serve.ServingCommand):
    """The command: it prepares the host and serves it."""

    help = (
        "Migrate, create the first admin user, print the addresses, and serve. `make run` calls it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of `serve`."""
        add_address(parser)

    def handle(self, **options: Any) -> None:
        """Prepare the host and serve until the process ends."""
        refuse_open_address(read_address(options).host)  # fail before anything is changed
        Path(project.VAR_DIR).mkdir(parents=True, exist_ok=True)
        if migrate():
            self.stdout.write("The database is up to date.")
        # Another project has users of its own.
        given = os.environ.get("ADMIN_PASSWORD", "")
        password = create_first_admin(given) if project.A2A_OWN_PROJECT else None
        if password is not None:
            self.stdout.write(self.style.WARNING(admin_notice(password)))
        connections.close_all()
        if no_grpc := serve_grpc.serve_in_background(options["host"]):
            self.stdout.write(self.style.WARNING(no_grpc))
        serve_site(options, lambda at: self.stdout.write(banner(at)))


def migrate() -> bool:
    """Apply the missing migrations; False when none was missing. Quicker than Django's own empty run.

    CommandError with the database's own words when it cannot be reached, or refuses this user.
    """
    try:
        if not count_missing_migrations():
            return False
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        raise CommandError(explain(error)) from error
    return True


def create_first_admin(password: str) -> str | None:
    """Create the superuser `admin` if there is no superuser at all; None when there is one.

    Returns the password if it was generated, and "" if it was given: the operator's choice is not shown. CommandError
    when a user without rights has the name.
    """
    users = get_user_model()._default_manager  # noqa: SLF001 - Django's own name for it
    if users.filter(is_superuser=True).exists():
        return None
    if users.filter(**{users.model.USERNAME_FIELD: ADMIN}).exists():
        raise CommandError(
            f"There is no superuser, and the user {ADMIN!r} is another one. "
            "Create one under another name: python manage.py createsuperuser"
        )
    made = "" if password else secrets.token_urlsafe(PASSWORD_BYTES)
    users.create_superuser(ADMIN, password=password or made)
    return made


def admin_notice(password: str) -> str:
    """Return the message that is shown once, when the first admin was created."""
    if not password:
        return f"Created the admin user {ADMIN!r} with the password of ADMIN_PASSWORD."
    return (
        f"Created the admin user {ADMIN!r} with the password {password}\n"
        "It is not shown again. To change it: python manage.py changepassword admin"
    )


def banner(address: Address) -> str:
    """Return the addresses and an example, for a person at a terminal."""
    url = f"{address.url.rstrip('/')}{conf.PREFIX}/"
    grpc = Address(address.host, int(conf.GRPC_PORT)).dialled.place
    lines = [
        "",
        f"The host is up, process {os.getpid()}. Ctrl-C ends it.",
        "",
        f"  start     {url}",
        f"  admin     {url}admin/",
        f"  agents    {url}agents/",
        *(f"            {url}agents/{slug}/" for slug in sorted(a.slug for a in registry.agents())),
        f"  card      {url}.well-known/agent-card.json",
        *([f"  gRPC      {grpc}"] if conf.GRPC_PORT else []),
        "",
        f"  try       {try_it(url)}",
        "",
    ]
    if allows_anonymous():
        lines += [
            "EVERYONE who can reach this address may use the agents. To require credentials: A2A_ANONYMOUS=0",
            "",
        ]
    else:
        lines += [
            "Callers need credentials: python manage.py api_keys create NAME makes a key for one.",
            "",
        ]
    return "\n".join(lines)


def try_it(url: str) -> str:
    """Return a curl command that sends a message to the default agent and prints the task."""
    message = {
        "messageId": secrets.token_hex(4),
        "role": "ROLE_USER",
        "parts": [{"text": "echo hello"}],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    agent = registry.find(conf.DEFAULT_AGENT)
    own = sample_header(agent) if agent else ""
    words = ["curl", "-s", f"{url}agents/{conf.DEFAULT_AGENT}/"]
    for header in filter(None, ("Content-Type: application/json", "A2A-Version: 1.0", own)):
        words += ["-H", header]
    return shlex.join([*words, "-d", json.dumps(body, separators=(",", ":"))])
