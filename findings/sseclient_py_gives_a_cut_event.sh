#!/bin/sh
# Package:   sseclient-py 1.9.0, beside httpx-sse 0.4.3 (PyPI)
# Behaviour: where a connection ends in the middle of an event, it gives what came of it as an event, with its id. In
#            server-sent events a block without its empty line is thrown away. A client reads half of the JSON; if it
#            then resumes after the last id that it saw, it never gets this event whole. Streams without chunks end so:
#            HTTP/1.0, or `Connection: close`, as behind a proxy. httpx-sse gives only whole events.
# Output:    sseclient-py: 1 {"text": "a"}, 2 {"text":
#            httpx-sse: 1 {"text": "a"}
# Run:       sh findings/sseclient_py_gives_a_cut_event.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet sseclient-py==1.9.0 httpx==0.28.1 httpx-sse==0.4.3
cat > "$place/try.py" <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
from httpx_sse import EventSource
from sseclient import SSEClient


class Server(BaseHTTPRequestHandler):
    """Answers by HTTP/1.0, and goes away within the second event."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b'id: 1\ndata: {"text": "a"}\n\nid: 2\ndata: {"text":')

    def log_message(self, *_):
        pass


class Pieces:
    """A response of httpx as sseclient-py takes it."""

    def __init__(self, response):
        self.response = response

    def __iter__(self):
        return self.response.iter_bytes()


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
readers = {
    "sseclient-py": lambda response: SSEClient(Pieces(response)).events(),
    "httpx-sse": lambda response: EventSource(response).iter_sse(),
}
for name, read in readers.items():
    with httpx.stream("GET", f"http://127.0.0.1:{server.server_port}/") as response:
        print(f"{name}: {', '.join(f'{event.id} {event.data}' for event in read(response))}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(httpx-sse: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
