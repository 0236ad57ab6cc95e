#!/bin/sh
# Package:   aiohttp-sse-client 0.2.1 with aiohttp 3.14.5 (PyPI)
# Behaviour: it connects again when a stream ends, as server-sent events want it of a GET, also if the method is POST
#            (`option={"method": "POST"}`). A stream of A2A, or of a model, is the answer to a POST: the loop over it does
#            not end, and after ten seconds the same message is sent again, and again after each answer. Only an answer
#            that is no 200 stops it, with an exception. `Last-Event-ID` tells the server that it is a repetition.
# Output:    POST {"text": "book a table"}, after event None
#            POST {"text": "book a table"}, after event 1
#            POST {"text": "book a table"}, after event 1
#            read: booked, booked; then ConnectionError
# Run:       sh findings/aiohttp_sse_client_posts_again.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet aiohttp==3.14.5 aiohttp-sse-client==0.2.1
cat > "$place/try.py" <<'PYTHON'
import asyncio
import logging
from datetime import timedelta

from aiohttp import web
from aiohttp_sse_client.client import EventSource

logging.disable()
asked, read = [], []


async def answer(request):
    """Book, and answer by a stream that ends; refuse the third time."""
    body, after = await request.text(), request.headers.get("Last-Event-ID")
    asked.append(body)
    print(f"POST {body}, after event {after}")
    if len(asked) == 3:
        raise web.HTTPConflict
    stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(b"id: 1\ndata: booked\n\n")
    return stream


async def book():
    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = "http://%s:%s/" % runner.addresses[0]
    how = {"option": {"method": "POST"}, "json": {"text": "book a table"}}
    try:
        async with EventSource(url, reconnection_time=timedelta(0), **how) as events:
            async for event in events:
                read.append(event.data)
    except ConnectionError as fault:
        print(f"read: {', '.join(read)}; then {type(fault).__name__}")
    await runner.cleanup()


asyncio.run(book())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(POST .*\|read: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
