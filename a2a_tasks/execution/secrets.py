"""The secrets of a turn that the host carries: asked for with a link, read from the store, wiped when the turn is over."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace

from a2a_tasks import process
from a2a_tasks.agents import Secrets, text
from a2a_tasks.agents.emission import Status
from a2a_tasks.conf import conf
from a2a_tasks.protocol.fields import rfc3339
from a2a_tasks.protocol.operators import HANDED_OVER, HANDOVER
from a2a_tasks.store import handed
from a2a_tasks.store.handed import Link
from a2a_tasks.store.hop import hop, until_answered
from a2a_tasks.store.records import Assignment

__all__ = ["PATH", "StoredSecrets", "url_of"]

#: Where the page is on which secrets are handed over.
PATH = "/handover/"


def url_of(token: str) -> str:
    """The address of the page, below A2A_PUBLIC_URL; without it below the site of this process, or relative if it serves none."""
    return f"{str(conf.PUBLIC_URL).rstrip('/') or process.site}{PATH}{token}"


class StoredSecrets(Secrets):
    """Those of one run."""

    def __init__(self, run: Assignment) -> None:
        super().__init__()
        self._run = run
        #: Did secrets come with the message of the turn? No client can say so in its metadata.
        self._came = HANDED_OVER in run.input

    async def handed(self) -> Mapping[str, str]:
        """All that was handed over for this run's turn; nothing of it is kept here. Raises Overloaded."""
        if not self._came:
            return {}
        return await until_answered(functools.partial(hop, handed.read, self._run), repeatable=True)

    async def asked(self, said: Status) -> Status:
        """The agent's question with the link in it. Raises Fenced, Overloaded, and TypeError for what is no text."""
        reason = "\n".join(part.text for part in said.parts if isinstance(part.text, str))
        ask = functools.partial(hop, handed.ask, self._run, said.hand_over, reason)
        link = await until_answered(ask)
        return said if link is None else _with(said, link)

    async def wipe(self) -> None:
        """The turn is over: nobody reads any more what came with it. Raises Overloaded."""
        if self._came:
            await hop(handed.wipe, self._run.task, self._run.input_number)


def _with(said: Status, link: Link) -> Status:
    url = url_of(link.token)
    until = f"{link.expires_at:%Y-%m-%d %H:%M} UTC"
    words = f"Hand over {', '.join(said.hand_over)} at {url} (once, until {until}). It does not become part of this conversation."
    about = {"url": url, "names": list(said.hand_over), "expiresAt": rfc3339(link.expires_at)}
    metadata = {**(said.metadata or {}), HANDOVER: about}
    return replace(said, parts=(*said.parts, text(words)), metadata=metadata)
