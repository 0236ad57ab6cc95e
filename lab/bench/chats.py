"""`python -m lab.bench.chats`: chat completions at the door for OpenAI's API, beside blocking sends of A2A to the same agent.

The loads take short turns, since a machine is faster in one minute than in the next; a ratio is of neighbours. The
messages that go on are sent to the conversations that the ones before began.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import uuid
from statistics import median

import uvloop

from lab.bench import wrk
from lab.bench.client import Endpoint, send
from lab.bench.scenarios import ECHOED
from lab.bench.targets import OursLocal, server_of_run
from lab.bench.wrk import Metrics

CONNECTIONS = 16
ANSWERED = ['"chatcmpl-', '"finish_reason":"stop"', '"content":"hi ']
FIGURES = ("req/s", "p50 ms", "p99 ms", "server CPU ms/req")


class ChattingHost(OursLocal):
    """The host with the door, in one process."""

    name = "ours-chats"
    settings = {"A2A_DOORS": "openai"}


def chat(*texts: str) -> str:
    """A request of a client that has said and heard these texts, in turns."""
    messages = [
        {"role": "assistant" if place % 2 else "user", "content": text}
        for place, text in enumerate(texts)
    ]
    return json.dumps({"model": "demo", "messages": messages})


async def turn(target: OursLocal, seconds: int) -> dict[str, Metrics]:
    """Each load once."""
    door, salt = copy.copy(target), uuid.uuid4().hex[:8]
    door.endpoint = Endpoint(target.endpoint.url.replace("/agents/demo/", "/v1/chat/completions"))
    begun, goes_on = chat("echo hi @ID@"), chat("echo hi @ID@", "hi @ID@", "echo hi @ID@")
    return {
        "send": await wrk.load(
            target, send("echo hi", message_id="@ID@"), ECHOED, CONNECTIONS, seconds
        ),
        "chat": await wrk.load(door, begun, ANSWERED, CONNECTIONS, seconds, salt),
        "chat that goes on": await wrk.load(
            door, goes_on, ANSWERED, CONNECTIONS, max(1, seconds // 2), salt
        ),
    }


async def measure(target: OursLocal, turns: int, seconds: int) -> None:
    """Measure, and print the table."""
    target.prepare()
    async with target.up():
        await turn(target, 1)
        found = [await turn(target, seconds) for _ in range(turns)]
    print(f"| | {' | '.join(FIGURES)} | p50 / send |\n|{' --- |' * (len(FIGURES) + 2)}")
    for load in found[0]:
        shown = [f"{median(one[load][name] or 0 for one in found):.1f}" for name in FIGURES]
        ratio = median((one[load]["p50 ms"] or 0) / (one["send"]["p50 ms"] or 1) for one in found)
        print(f"| {load} | {' | '.join(shown)} | {ratio:.2f} |")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.chats", description=__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    args = parser.parse_args()
    with server_of_run() as server:
        uvloop.run(measure(ChattingHost(server), args.turns, args.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
