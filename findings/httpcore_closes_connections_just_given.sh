#!/bin/sh
# Package:   httpx 0.28.1 with httpcore 1.0.9 and anyio 4.16.0 (PyPI)
# Behaviour: a request that gets a kept connection may lose it to the pool itself: ReadError, without a text, from a server
#            that closed nothing. It takes two kept connections whose time (`keepalive_expiry`, 5 s by default) ends after
#            the request got one of them and before it wrote: a busy event loop, or a request that comes 5 s after the
#            last. The pool closes those that have expired one after another, and looks at their state only before the
#            first. httpx sends no request twice. With `keepalive_expiry=None` nothing is lost.
# Output:    keepalive_expiry 0.2: ReadError, then 200
#            keepalive_expiry None: 200, then 200
# Run:       sh findings/httpcore_closes_connections_just_given.sh   (needs python3 and PyPI)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet httpx==0.28.1 httpcore==1.0.9 anyio==4.16.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import time

import httpx

EXPIRY = 0.2


async def answer(reader, writer):
    """Answer each request of a connection, until its client closes it."""
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def come_late(client, url):
    """Send when the loop was busy until the kept connections had expired."""
    await asyncio.sleep(0)
    time.sleep(EXPIRY)
    return await client.get(url)


async def try_with(expiry):
    servers = [await asyncio.start_server(answer, "127.0.0.1", 0) for _ in range(2)]
    one, two = (f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/" for server in servers)
    async with httpx.AsyncClient(
        limits=httpx.Limits(keepalive_expiry=expiry), trust_env=False
    ) as client:
        for url in (one, two):
            assert (await client.get(url)).status_code == 200
        found = await asyncio.gather(client.get(two), come_late(client, one), return_exceptions=True)
    return [each.status_code if isinstance(each, httpx.Response) else type(each).__name__ for each in found]


for expiry, expected in ((EXPIRY, ["ReadError", 200]), (None, [200, 200])):
    found = asyncio.run(try_with(expiry))
    print(f"keepalive_expiry {expiry}: {found[0]}, then {found[1]}")
    assert found == expected, found
PYTHON
"$place/venv/bin/python" "$place/try.py"
