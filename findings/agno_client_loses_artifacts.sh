#!/bin/sh
# Package:   agno 3.1.10 (PyPI), with fastapi 0.140.0 and python-multipart 0.0.20, which its client imports
# Behaviour: its A2AClient takes the text of an answer from the history alone. An agent that answers by an artifact, as
#            A2A 0.3 §9.2 shows, is completed with an empty content, and its artifact comes without parts. By default
#            ("rest") it posts a JSON-RPC envelope to the route of HTTP+JSON; with "json-rpc" it never finds the card.
# Output:    rest: card True, posts to /v1/message:send the members ['id', 'jsonrpc', 'method', 'params']
#            rest: completed, content '', artifact ['answer'], has parts False
#            json-rpc: card False, posts to / the members ['id', 'jsonrpc', 'method', 'params']
#            json-rpc: completed, content '', artifact ['answer'], has parts False
# Run:       sh findings/agno_client_loses_artifacts.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet agno==3.1.10 fastapi==0.140.0 python-multipart==0.0.20 "httpx[http2]==0.28.1"
cat > "$place/try.py" <<'PYTHON'
import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agno.client.a2a import A2AClient

posted = []


class Agent(BaseHTTPRequestHandler):
    """An agent of A2A 0.3 that answers by an artifact."""

    def do_GET(self):
        if self.path != "/.well-known/agent-card.json":
            self.give(404, {})
            return
        self.give(200, {
            "protocolVersion": "0.3.0", "name": "Echo", "description": "Repeats", "version": "1",
            "url": f"http://127.0.0.1:{self.server.server_port}/", "preferredTransport": "JSONRPC",
            "capabilities": {}, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        })

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        posted.append((self.path, sorted(request)))
        said = request["params"]["message"]
        task = {
            "kind": "task", "id": "1", "contextId": "2", "status": {"state": "completed"},
            "history": [{**said, "kind": "message", "taskId": "1", "contextId": "2"}],
            "artifacts": [{"artifactId": "a", "name": "answer", "parts": said["parts"]}],
        }
        self.give(200, {"jsonrpc": "2.0", "id": request["id"], "result": task})

    def give(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def ask(protocol):
    client = A2AClient(f"http://127.0.0.1:{server.server_port}", protocol=protocol)
    card = await client.aget_agent_card()
    done = await client.send_message("hello")
    path, members = posted.pop()
    print(f"{protocol}: card {card is not None}, posts to {path} the members {members}")
    names, parts = [found.name for found in done.artifacts], any(hasattr(found, "parts") for found in done.artifacts)
    print(f"{protocol}: {done.status}, content {done.content!r}, artifact {names}, has parts {parts}")


async def ask_both():
    for protocol in ("rest", "json-rpc"):
        await ask(protocol)


server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
threading.Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(ask_both())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(rest\|json-rpc\): .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
