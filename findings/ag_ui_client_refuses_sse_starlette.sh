#!/bin/sh
# Package:   @ag-ui/client 1.0.0 (npm) with sse-starlette 3.7.0 and uvicorn 0.54.0 (PyPI)
# Behaviour: HttpAgent ends events at "\n\n" alone. The empty line of sse-starlette, which is "\r\n\r\n" by default, as the
#            standard of event streams allows, ends none. So nothing is shown while the agent works, and at the end all
#            events together are no JSON: SyntaxError. `EventSourceResponse(events, sep="\n")` helps.
# Output:    sep by default: 0 events, then SyntaxError
#            sep "\n": 5 events, "hi"
# Run:       sh findings/ag_ui_client_refuses_sse_starlette.sh   (needs Node.js 20, npm, python3 and PyPI; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet sse-starlette==3.7.0 uvicorn==0.54.0
npm install --prefix "$place" --silent --no-fund --no-audit @ag-ui/client@1.0.0 @ag-ui/core@1.0.0
cat > "$place/try.py" <<'PYTHON'
import json
import socket
import subprocess
import sys
import threading

import uvicorn
from sse_starlette import EventSourceResponse

run = {"threadId": "t", "runId": "r"}
EVENTS = (
    {"type": "RUN_STARTED", **run},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "hi"},
    {"type": "RUN_FINISHED", **run},
)


async def serve(scope, receive, send):
    async def tell():
        for event in EVENTS:
            yield {"data": json.dumps(event)}

    sep = {"/default": None, "/newline": "\n"}[scope["path"]]
    await EventSourceResponse(tell(), sep=sep)(scope, receive, send)


listener = socket.create_server(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(serve, lifespan="off", log_level="error"))
thread = threading.Thread(target=server.run, args=([listener],))
thread.start()
subprocess.run(["node", sys.argv[1], f"http://127.0.0.1:{listener.getsockname()[1]}"], check=True)
server.should_exit = True
thread.join()
PYTHON
cat > "$place/try.mjs" <<'JAVASCRIPT'
import { HttpAgent } from "@ag-ui/client";

const initialMessages = [{ id: "u", role: "user", content: "hello" }];
for (const [name, path] of [["sep by default", "default"], ['sep "\\n"', "newline"]]) {
  const agent = new HttpAgent({ url: `${process.argv[2]}/${path}`, initialMessages });
  let events = 0;
  const seen = await agent.runAgent({}, { onEvent: () => void (events += 1) }).then(
    ({ newMessages }) => JSON.stringify(newMessages[0].content),
    (fault) => `then ${fault.name}`,
  );
  console.log(`${name}: ${events} events, ${seen}`);
}
process.exit(0);
JAVASCRIPT
"$place/venv/bin/python" "$place/try.py" "$place/try.mjs" 2>/dev/null | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(sep .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
