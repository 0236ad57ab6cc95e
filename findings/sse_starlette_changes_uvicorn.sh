#!/bin/sh
# Package:   sse-starlette 3.7.0 (which mcp needs) with uvicorn 0.54.0 (PyPI)
# Behaviour: its import replaces the signal handler of uvicorn's servers for the whole process. At SIGTERM it ends every
#            event stream of its own within half a second, whatever `timeout_graceful_shutdown` says, so that a server
#            cannot answer the requests that wait. `AppStatus.disable_automatic_graceful_drain()` is the way out.
# Output:    replaced: True
#            by default: event 0
#            disabled: event 0, event 1, done
# Run:       sh findings/sse_starlette_changes_uvicorn.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet sse-starlette==3.7.0 starlette==1.10.0 uvicorn==0.54.0
cat > "$place/serve.py" <<'PYTHON'
import asyncio
import sys

import uvicorn
from sse_starlette.sse import AppStatus, EventSourceResponse

if sys.argv[2] == "disabled":
    AppStatus.disable_automatic_graceful_drain()


async def words():
    yield "event 0"
    await asyncio.sleep(3)
    yield "event 1"
    yield "done"


async def app(scope, receive, send):
    await EventSourceResponse(words())(scope, receive, send)


uvicorn.run(app, port=int(sys.argv[1]), log_level="error", lifespan="off", timeout_graceful_shutdown=10)
PYTHON
cat > "$place/try.py" <<'PYTHON'
import http.client
import signal
import socket
import subprocess
import sys
import time

from uvicorn import Server

before = Server.handle_exit
import sse_starlette.sse  # noqa: E402, F401

print(f"replaced: {Server.handle_exit is not before}")
for way in ("by default", "disabled"):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, sys.argv[1], str(port), way])
    for _ in range(100):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/")
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    answer = connection.getresponse()
    lines = [answer.readline().decode().strip()]
    server.send_signal(signal.SIGTERM)
    try:
        lines += [line.decode().strip() for line in answer]
    except http.client.HTTPException:
        pass
    server.wait()
    print(f"{way}: {', '.join(line.removeprefix('data: ') for line in lines if line.startswith('data: '))}")
PYTHON
"$place/venv/bin/python" "$place/try.py" "$place/serve.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
replaced: True
by default: event 0
disabled: event 0, event 1, done
TEXT
cmp "$place/seen" "$place/expected"
