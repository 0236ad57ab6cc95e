#!/bin/sh
# Package:   ag2 1.2.1 (PyPI), with a2a-sdk 1.3.0
# Behaviour: its A2A client takes each end of a stream for the end of the task. A stream that ends while the agent works,
#            as at the restart of a server, gives the text so far with `finish_reason` "completed"; the task is neither
#            read nor subscribed to. So does a canceled task. Of a Task in a stream it keeps the ids alone: an answer that
#            is one Task, as A2A 1.0 §3.1.2 allows, is empty, and after a reconnection what the Task holds is lost.
# Output:    cut while working: 'Hel', completed; asked SendStreamingMessage
#            canceled: 'Hel', completed; asked SendStreamingMessage
#            one Task that has ended: None, completed; asked SendStreamingMessage
# Run:       sh findings/ag2_takes_a_cut_stream_for_an_answer.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "ag2[a2a]==1.2.1" a2a-sdk==1.3.0
cat > "$place/try.py" <<'PYTHON'
import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ag2 import Agent
from ag2.a2a import A2AConfig

IDS = {"taskId": "1", "contextId": "2"}


def task(state, *texts):
    artifacts = [{"artifactId": "a", "parts": [{"text": text}]} for text in texts]
    return {"task": {"id": "1", "contextId": "2", "status": {"state": state}, "artifacts": artifacts}}


def piece(text):
    return {"artifactUpdate": {**IDS, "artifact": {"artifactId": "a", "parts": [{"text": text}]}}}


WORKING = task("TASK_STATE_WORKING")
STREAMS = {
    "cut while working": [WORKING, piece("Hel")],
    "canceled": [
        WORKING, piece("Hel"),
        {"statusUpdate": {**IDS, "status": {"state": "TASK_STATE_CANCELED"}}},
    ],
    "one Task that has ended": [task("TASK_STATE_COMPLETED", "Hello")],
}
asked = []


class Server(BaseHTTPRequestHandler):
    """An agent of A2A 1.0, over JSON-RPC."""

    def do_GET(self):
        found = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        self.give("application/json", json.dumps({
            "name": "Echo", "description": "Repeats", "version": "1", "supportedInterfaces": [found],
            "capabilities": {"streaming": True}, "skills": [],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        }))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append(request["method"])
        answers = [{"jsonrpc": "2.0", "id": request["id"], "result": one} for one in STREAMS[name]]
        self.give("text/event-stream", "".join(f"data: {json.dumps(one)}\n\n" for one in answers))

    def give(self, kind, text):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
for name in STREAMS:
    asked.clear()
    reply = asyncio.run(Agent("remote", config=A2AConfig(card_url=url)).ask("hello"))
    end = reply.response.finish_reason
    print(f"{name}: {reply.body!r}, {end}; asked {', '.join(asked)}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(.*; asked .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
