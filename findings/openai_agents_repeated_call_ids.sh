#!/bin/sh
# Package:   openai-agents 0.24.0 (PyPI)
# Behaviour: some servers give all calls of one answer the same id. If such calls have equal arguments, the SDK makes one
#            of them, and removes the others from the conversation without a warning: a die that is thrown twice is
#            thrown once. If the arguments differ, the run fails with ModelBehaviorError and no call is made.
# Output:    equal arguments: thrown [6]; the model reads 1 call and 1 result
#            other arguments: thrown []; ModelBehaviorError
# Run:       sh findings/openai_agents_repeated_call_ids.sh   (needs python3 and PyPI; about a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet openai-agents==0.24.0
cat > "$place/try.py" <<'PYTHON'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from agents import Agent, ModelBehaviorError, OpenAIChatCompletionsModel, Runner, function_tool
from agents import set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
sides, read, thrown = (), [], []


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        read[:] = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        message = {"role": "assistant", "content": "done"}
        if read[-1]["role"] == "user":
            given = [json.dumps({"sides": number}) for number in sides]
            calls = [{"name": "throw", "arguments": text} for text in given]
            message["content"] = None
            message["tool_calls"] = [
                {"id": "call_0", "type": "function", "function": call} for call in calls
            ]
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "finish_reason": reason, "message": message}
        about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        body = json.dumps({**about, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@function_tool
def throw(sides: int) -> int:
    """Throw a die."""
    thrown.append(sides)
    return sides


def roles(role):
    calls = [call for message in read for call in message.get("tool_calls", [])]
    return len(calls) if role == "call" else sum(m["role"] == "tool" for m in read)


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1"
client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
agent = Agent(name="a", model=OpenAIChatCompletionsModel("m", client), tools=[throw])
for name, sides in (("equal", (6, 6)), ("other", (6, 20))):
    thrown.clear()
    try:
        Runner.run_sync(agent, "Throw twice")
        told = f"the model reads {roles('call')} call and {roles('tool')} result"
    except ModelBehaviorError as fault:
        told = type(fault).__name__
    print(f"{name} arguments: thrown {thrown}; {told}")
PYTHON
"$place/venv/bin/python" "$place/try.py" > "$place/seen"
cat "$place/seen"
cat > "$place/expected" <<'TEXT'
equal arguments: thrown [6]; the model reads 1 call and 1 result
other arguments: thrown []; ModelBehaviorError
TEXT
cmp "$place/seen" "$place/expected"
