#!/bin/sh
# Package:   litellm 1.110.2 (PyPI), models of its provider `a2a/`
# Behaviour: a task that failed, was rejected or was canceled is a completion like any other: `finish_reason` is "stop",
#            the content is the words of its status or nothing, and nothing is raised, so fallbacks and retries do not
#            begin. Of a completed task it reads the words of the status instead of the artifacts if there are any, else
#            the first artifact alone, with a blank between its parts. The agent gets all messages as one text with the
#            roles in front, without a context, so each turn is a new task.
# Output:    sent: 'user: hi\nassistant: hello\nuser: why?', context None
#            failed with words: content 'no disk', finish_reason stop
#            rejected: content '', finish_reason stop
#            words and an artifact: content 'Done.', finish_reason stop
#            two artifacts: content 'one', finish_reason stop
#            two parts: content 'Hel lo', finish_reason stop
#            failed stream: content 'Hel', finish_reason stop
# Run:       sh findings/litellm_a2a_fails_as_an_answer.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet litellm==1.110.2
cat > "$place/try.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import litellm


def parts(*texts):
    return {"parts": [{"kind": "text", "text": text} for text in texts]}


def artifact(id_, *texts):
    return {"artifactId": id_, **parts(*texts)}


def status(state, *words):
    said = {"kind": "message", "role": "agent", "messageId": "m", **parts(*words)}
    return {"state": state, **({"message": said} if words else {})}


TASKS = {
    "failed with words": {"status": status("failed", "no disk")},
    "rejected": {"status": status("rejected")},
    "words and an artifact": {
        "status": status("completed", "Done."), "artifacts": [artifact("a", "42")],
    },
    "two artifacts": {
        "status": status("completed"), "artifacts": [artifact("a", "one"), artifact("b", "two")],
    },
    "two parts": {"status": status("completed"), "artifacts": [artifact("a", "Hel", "lo")]},
}
IDS = {"taskId": "1", "contextId": "2"}
STREAM = [
    {"kind": "task", "id": "1", "contextId": "2", "status": status("working")},
    {"kind": "artifact-update", **IDS, "artifact": artifact("a", "Hel")},
    {"kind": "status-update", **IDS, "status": status("failed"), "final": True},
]
sent = []


class Agent(BaseHTTPRequestHandler):
    """An agent of A2A 0.3, whose tasks end as the test says."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent.append(asked["params"]["message"])
        streams = asked["method"] == "message/stream"
        task = {"kind": "task", "id": "1", "contextId": "2", **TASKS.get(name, {})}
        found = STREAM if streams else [task]
        answers = [json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": one}) for one in found]
        body = "".join(f"data: {one}\n\n" for one in answers) if streams else answers[0]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def ask(*said, stream=False):
    messages = [{"role": role, "content": text} for role, text in said]
    return litellm.completion("a2a/agent", api_base=url, messages=messages, stream=stream)


server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
name = "two parts"
ask(("user", "hi"), ("assistant", "hello"), ("user", "why?"))
print(f"sent: {sent[0]['parts'][0]['text']!r}, context {sent[0].get('contextId')}")
for name in TASKS:
    choice = ask(("user", "hi")).choices[0]
    print(f"{name}: content {choice.message.content!r}, finish_reason {choice.finish_reason}")
chunks = [chunk.choices[0] for chunk in ask(("user", "hi"), stream=True)]
content = "".join(chunk.delta.content or "" for chunk in chunks)
print(f"failed stream: content {content!r}, finish_reason {chunks[-1].finish_reason}")
PYTHON
LITELLM_LOCAL_MODEL_COST_MAP=True "$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n '/^# Run/q; s/^# Output:    //p; s/^#            \(.*finish_reason stop\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
