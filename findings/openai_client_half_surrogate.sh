#!/bin/sh
# Package:   openai 3.57.0 (PyPI)
# Behaviour: the client reads an answer with half of a surrogate pair (JSON "x\ud83dy", which json.loads takes), and
#            cannot send the same text back in the next request: UnicodeEncodeError in the building of the request.
#            So a conversation with such an answer or result of a tool cannot go on with the client alone.
# Output:    received 'x\ud83dy'
#            UnicodeEncodeError: surrogates not allowed
# Run:       sh findings/openai_client_half_surrogate.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet openai==3.57.0
cat > "$place/try.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai

ANSWER = {
    "id": "x", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "x\ud83dy"}}],
}


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = openai.OpenAI(
    base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0
)
asked = {"role": "user", "content": "hi"}
first = client.chat.completions.create(model="m", messages=[asked])
text = first.choices[0].message.content
print("received", ascii(text))
try:
    said = {"role": "assistant", "content": text}
    client.chat.completions.create(model="m", messages=[asked, said])
    print("sent it back")
except UnicodeEncodeError as fault:
    print("UnicodeEncodeError:", fault.reason)
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
received 'x\ud83dy'
UnicodeEncodeError: surrogates not allowed
TEXT
cmp "$place/seen" "$place/expected"
