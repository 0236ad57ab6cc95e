#!/bin/sh
# Package:   python-a2a 0.5.10 (PyPI)
# Behaviour: its client calls `tasks/send` of A2A 0.1 at paths that no version of the protocol has, with a message
#            without `parts` (`content` instead). Refused, it posts the bare message, which is no JSON-RPC. One `ask` is
#            four requests, and it returns the JSON of the last one's error as the answer: nothing is raised.
# Output:    POST /tasks/send tasks/send ['content', 'message_id', 'role']
#            POST /a2a/tasks/send tasks/send ['content', 'message_id', 'role']
#            POST /tasks/send tasks/send ['content', 'message_id', 'role']
#            POST / no method ['content', 'message_id', 'role']
#            the answer is the error: True
# Run:       sh findings/python_a2a_speaks_no_published_dialect.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet python-a2a==0.5.10
cat > "$place/try.py" <<'PYTHON'
import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from python_a2a import A2AClient

logging.disable()
REFUSAL = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "message.parts is missing"}}


class Agent(BaseHTTPRequestHandler):
    """An agent of A2A 0.3 that says what comes, and refuses it."""

    def do_GET(self):
        self.give({
            "protocolVersion": "0.3.0", "name": "Echo", "description": "Repeats", "version": "1",
            "url": f"http://127.0.0.1:{self.server.server_port}/", "preferredTransport": "JSONRPC",
            "capabilities": {}, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        })

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = request.get("params", {}).get("message", request)
        print("POST", self.path, request.get("method", "no method"), sorted(message))
        self.give(REFUSAL)

    def give(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
threading.Thread(target=server.serve_forever, daemon=True).start()
answer = A2AClient(f"http://127.0.0.1:{server.server_port}").ask("hello")
print("the answer is the error:", json.loads(answer) == REFUSAL)
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(POST .*\|the answer .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
