#!/bin/sh
# Package:   aiohttp 3.14.5 (PyPI)
# Behaviour: `async for line in response.content`, with which readers of event streams take lines, raises for a line of
#            more than twice `read_bufsize`: 512 KiB by default. An event of A2A is one line, and may have megabytes. The
#            exception, LineTooLong, is one of wrong HTTP and has the status 400, though the server answered 200 and sent
#            nothing wrong. The events before it were read; `read_bufsize` of the session or of the call raises the limit.
# Output:    a line of 500000 bytes: 1 event
#            a line of 600000 bytes: LineTooLong with status 400, after an answer with status 200
#            a line of 600000 bytes, read_bufsize 1 MiB: 1 event
# Run:       sh findings/aiohttp_ends_at_long_lines.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet aiohttp==3.14.5
cat > "$place/try.py" <<'PYTHON'
import asyncio

from aiohttp import ClientSession, web
from aiohttp.http_exceptions import LineTooLong


async def answer(request):
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(b"data: " + b"x" * int(request.query["size"]) + b"\n\n")
    return stream


async def read(size, **limits):
    async with ClientSession(**limits) as session, session.get(f"{url}?size={size}") as response:
        try:
            found = [line async for line in response.content if line.startswith(b"data:")]
            return f"{len(found)} event"
        except LineTooLong as fault:
            own = f"after an answer with status {response.status}"
            return f"{type(fault).__name__} with status {fault.code}, {own}"


async def read_all():
    global url
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = "http://%s:%s/" % runner.addresses[0]
    print("a line of 500000 bytes:", await read(500_000))
    print("a line of 600000 bytes:", await read(600_000))
    print("a line of 600000 bytes, read_bufsize 1 MiB:", await read(600_000, read_bufsize=2**20))
    await runner.cleanup()


asyncio.run(read_all())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(a line of .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
