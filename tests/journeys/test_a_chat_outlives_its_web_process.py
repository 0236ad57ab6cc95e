"""A web process is killed during a chat completion: the request that its client sends again joins the task, on another process."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.journeys.hosts import SHARED, Host, web
from tests.journeys.waiting import PATIENCE
from tests.support.thorough import thorough

pytestmark = pytest.mark.backend("stack")
PIECES = 40
DOOR = {**SHARED, "A2A_DOORS": "openai"}
#: What the official client sends with a second try.
AGAIN = {"x-stainless-retry-count": "1"}


@pytest.mark.parametrize("stream", [thorough(False), True])
async def test_its_repetition_gets_the_whole_answer_of_the_one_task(
    site: Host, tmp_path: Path, stream: bool
) -> None:
    killed = tmp_path / "killed"  # the agent does not end before
    messages = [{"role": "user", "content": f"{PIECES} {killed}"}]
    body = {"model": "ticker", "messages": messages, "stream": True}
    path = "v1/chat/completions"
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        with web(DOOR) as doomed:
            async with http.stream("POST", f"{doomed.url}/{path}", json=body) as torn:
                task = torn.headers["a2a-task-id"]
                async for line in torn.aiter_lines():
                    if "#9;" in line:
                        break
                doomed.process.kill()
        with web(DOOR) as other:
            killed.touch()
            body["stream"] = stream
            answer = await http.post(f"{other.url}/{path}", json=body, headers=AGAIN)
    assert answer.headers["a2a-task-id"] == task
    assert all(f"#{number};" in answer.text for number in range(PIECES))
    assert ("[DONE]" in answer.text) is stream
