"""A secret that is handed over to the demo agent on its page, and where it must not be found."""

from __future__ import annotations

from typing import Any

import httpx
from django.apps import apps

from a2a_tasks.models import HandedSecret
from tests.journeys.fixtures import Ask
from tests.journeys.hosts import RUNNING
from tests.journeys.waiting import PATIENCE, eventually
from tests.journeys.wire import Plain

__all__ = ["SECRET", "hand_over", "is_nowhere", "page_of"]

SECRET = "canary-9f3b-e1c7-handed-over"


def page_of(task: dict[str, Any]) -> str:
    """The path of the page that the agent's message names."""
    url = task["status"]["message"]["metadata"]["urn:a2a-host:handover"]["url"]
    assert isinstance(url, str)
    return url[url.index("/handover/") :]


async def hand_over(client: Plain, url: str, task: str) -> None:
    """Open the page that the agent asks for, fill it in, and wait until the agent says that it has the secret."""
    page = page_of(await client.until(task, "TASK_STATE_AUTH_REQUIRED"))
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, trust_env=False) as browser:
        assert (await browser.get(page)).status_code == 200
        said = {
            "token": page.rpartition("/")[2],
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            "secret-0": SECRET,
        }
        answer = await browser.post("/handover/", data=said)
        assert (answer.status_code, SECRET in answer.text) == (200, False)
        assert (await browser.get(page)).status_code == 404

    async def had() -> bool:
        return "I have it" in str((await client.get(task))["status"].get("message"))

    await eventually(had, "the agent having the secret")


async def is_nowhere(ask: Ask) -> None:
    """Wait until no secret is kept any more; it is in no row, and in no log of a process of this run."""

    async def wiped() -> bool:
        return not await ask(lambda: HandedSecret.objects.exclude(sealed="").exists())

    await eventually(wiped, "the secret being wiped")
    rows = await ask(lambda: str([list(m._base_manager.values()) for m in apps.get_models()]))
    assert SECRET not in rows
    assert SECRET not in "".join(child.log for child in RUNNING.values())
