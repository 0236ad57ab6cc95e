#!/bin/sh
# Package:   strands-agents 1.62.0 with anthropic 0.125.0 and openai (PyPI)
# Behaviour: `inputTokens` of an agent's usage is what the provider calls so: for Anthropic without the tokens that were
#            read from a prompt cache, for OpenAI with them. The same prompt of 5,012 tokens, 5,000 of them from a cache,
#            is 12 or 5,012 input tokens; a bill by `inputTokens` leaves out nearly all of the first. Only the sum tells:
#            `totalTokens` is more than input and output where the cache stands beside the input.
# Output:    Anthropic: input 12, read from the cache 5000, output 3, total 5015
#            OpenAI: input 5012, read from the cache 5000, output 3, total 5015
# Run:       sh findings/strands_cache_tokens.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "strands-agents[anthropic,openai]==1.62.0" anthropic==0.125.0
cat > "$place/try.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from strands import Agent
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel

CLAUDE = {
    "input_tokens": 12, "cache_read_input_tokens": 5000, "cache_creation_input_tokens": 0,
    "output_tokens": 3,
}
GPT = {
    "prompt_tokens": 5012, "completion_tokens": 3, "total_tokens": 5015,
    "prompt_tokens_details": {"cached_tokens": 5000},
}
MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": None, "stop_sequence": None, "usage": CLAUDE,
}
EVENTS = [
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": CLAUDE},
    {"type": "message_stop"},
]
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
CHUNKS = [
    {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]},
    {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {**CHUNK, "choices": [], "usage": GPT},
]


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if self.path.endswith("/messages"):
            for event in EVENTS:
                text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                self.wfile.write(text.encode())
        else:
            for chunk in CHUNKS:
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
about = {"api_key": "none", "base_url": url}
models = {
    "Anthropic": AnthropicModel(client_args=about, model_id="m", max_tokens=10),
    "OpenAI": OpenAIModel(client_args={**about, "base_url": f"{url}/v1"}, model_id="m"),
}
for name, model in models.items():
    usage = Agent(model, callback_handler=None)("hello").metrics.accumulated_usage
    print(
        f"{name}: input {usage['inputTokens']},",
        f"read from the cache {usage.get('cacheReadInputTokens')},",
        f"output {usage['outputTokens']}, total {usage['totalTokens']}",
    )
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
Anthropic: input 12, read from the cache 5000, output 3, total 5015
OpenAI: input 5012, read from the cache 5000, output 3, total 5015
TEXT
cmp "$place/seen" "$place/expected"
