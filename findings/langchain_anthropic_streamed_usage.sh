#!/bin/sh
# Package:   langchain-anthropic 1.7.10 with langchain-core 1.8.3 and anthropic 2.14.0 (PyPI)
# Behaviour: when it streams it takes the tokens of the input from the last event (`message_delta`), where the API may
#            leave them out, and not from the first (`message_start`), which has them always. From a server that says them
#            once, as the API's own examples do, an answer has 0 input tokens; without streaming it has all.
# Output:    invoke: input 9, output 2
#            stream: input 0, output 2
# Run:       sh findings/langchain_anthropic_streamed_usage.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet langchain-anthropic==1.7.10 langchain-core==1.8.3 anthropic==2.14.0
cat > "$place/try.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_anthropic import ChatAnthropic

MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None,
    "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
BEGUN = {"content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, **BEGUN}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        streamed = json.loads(self.rfile.read(int(self.headers["content-length"]))).get("stream")
        texts = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS]
        body = ("".join(texts) if streamed else json.dumps(MESSAGE)).encode()
        self.send_response(200)
        kind = "text/event-stream" if streamed else "application/json"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
model = ChatAnthropic(model="m", base_url=url, api_key="none", max_retries=0, max_tokens=10)
whole = model.invoke("hello")
first, *rest = model.stream("hello")
for piece in rest:
    first += piece
for name, message in (("invoke", whole), ("stream", first)):
    used = message.usage_metadata
    print(f"{name}: input {used['input_tokens']}, output {used['output_tokens']}")
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
invoke: input 9, output 2
stream: input 0, output 2
TEXT
cmp "$place/seen" "$place/expected"
