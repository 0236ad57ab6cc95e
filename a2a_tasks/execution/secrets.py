"""The secrets of a turn on the host: requested with a link, read from the store, erased when the turn ends."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from a2a_tasks import process
from a2a_tasks.agents import Secrets, text
from a2a_tasks.agents.emission import StatusUpdate
from a2a_tasks.conf import base_url
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.operators import HANDED_OVER, HANDOVER
from a2a_tasks.store import handed_secrets
from a2a_tasks.store.db import retry_until_answered, run_in_thread
from a2a_tasks.store.handed_secrets import Link
from a2a_tasks.store.records import ClaimedRun

__all__ = ["PATH", "StoredSecrets", "url_of"]

#: Path of the page on which secrets are handed over.
PATH = "/handover/"


def url_of(token: str) -> str:
    """Return the URL of the page, below A2A_PUBLIC_URL or else the site of this process; relative if it serves none."""
    return f"{base_url(process.site)}{PATH}{token}"


class StoredSecrets(Secrets):
    """The secrets of one run."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__()
        self._run = run
        #: True if secrets came with the message of the turn. No client can set this key of the metadata.
        self._came = HANDED_OVER in run.input

    async def read_handed(self) -> Mapping[str, str]:
        """Return all secrets that were handed over for this run's turn, without a cache. Raises Overloaded."""
        if not self._came:
            return {}
        return await retry_until_answered(
            functools.partial(run_in_thread, handed_secrets.read, self._run), repeatable=True
        )

    async def add_link(self, status: StatusUpdate) -> StatusUpdate:
        """Return the agent's question with the link.

        Raises LeaseLost, Overloaded, and TypeError for names that are not texts.
        """
        reason = "\n".join(part.text for part in status.parts if isinstance(part.text, str))
        ask = functools.partial(
            run_in_thread, handed_secrets.ask, self._run, status.hand_over, reason
        )
        link = await retry_until_answered(ask)
        return status if link is None else _with(status, link)

    async def wipe(self) -> None:
        """Erase the secrets of the turn after its end. Raises Overloaded."""
        if self._came:
            await run_in_thread(handed_secrets.wipe, self._run.task, self._run.input_number)


def _with(status: StatusUpdate, link: Link) -> StatusUpdate:
    url = url_of(link.token)
    until = f"{link.expires_at:%Y-%m-%d %H:%M} UTC"
    sentence = f"Hand over {', '.join(status.hand_over)} at {url} (once, until {until}). It does not become part of this conversation."
    about = {"url": url, "names": list(status.hand_over), "expiresAt": rfc3339(link.expires_at)}
    metadata = {**(status.metadata or {}), HANDOVER: about}
    return replace(status, parts=(*status.parts, text(sentence)), metadata=metadata)
