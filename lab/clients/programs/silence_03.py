"""`python silence_03.py CARD_URL SECONDS stream|wait` where a2a-sdk 0.3.x is installed: its client as it is made by default.

Prints one line of JSON: the last text, or what went wrong. The SDK is imported by name because checkers of types see the
1.x of the tests themselves.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module

sdk = import_module("a2a.client")
helpers = import_module("a2a.client.helpers")


async def listen(url: str, seconds: str, way: str) -> str:
    """The last artifact of an agent that is silent for so long, or the error. `way`: "stream" or "wait"."""
    config = sdk.ClientConfig(streaming=way == "stream")
    client = await sdk.ClientFactory.connect(url, client_config=config)
    heard = ""
    try:
        async for task, _ in client.send_message(
            helpers.create_text_message_object(content=seconds)
        ):
            heard = "".join(p.root.text for one in task.artifacts or [] for p in one.parts)
    except Exception as fault:  # noqa: BLE001 - whatever happens is told
        return repr(fault)
    return heard


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(listen(*sys.argv[1:]))) + "\n")
