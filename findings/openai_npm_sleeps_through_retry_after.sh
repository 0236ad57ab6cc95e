#!/bin/sh
# Package:   openai 6.49.0 (npm), beside openai 3.57.0 (PyPI)
# Behaviour: the client of npm sleeps as long as `Retry-After` says before it repeats a request, in silence: neither its
#            `timeout` nor an abort signal ends the sleep, however long it is. That of PyPI gives the error at once if the
#            time is above two minutes. `x-should-retry: false` from the server is obeyed by both.
# Output:    npm, 3 s, timeout 1 s, aborted after 1.5 s: APIUserAbortError after 3 s, 1 request
#            npm, 3 s and x-should-retry: RateLimitError after 0 s, 1 request
#            PyPI, an hour: RateLimitError, 1 request
# Run:       sh findings/openai_npm_sleeps_through_retry_after.sh   (needs Node.js 20, npm, python3 and PyPI; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet openai==3.57.0
npm install --prefix "$place" --silent --no-fund --no-audit openai@6.49.0
cat > "$place/try.mjs" <<'JAVASCRIPT'
import http from "node:http";
import OpenAI from "openai";

let asked = 0;
let headers;
const server = http.createServer((request, response) => {
  asked += 1;
  request.resume();
  response.writeHead(429, { "content-type": "application/json", ...headers });
  response.end('{"error": {"message": "Nothing is left of the budget"}}');
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
const client = new OpenAI({ baseURL, apiKey: "none", timeout: 1000 });
const asking = { model: "m", messages: [{ role: "user", content: "hi" }] };

async function ask(name, told, signal) {
  headers = told;
  asked = 0;
  const began = performance.now();
  const seen = await client.chat.completions.create(asking, { signal }).catch((fault) => fault.constructor.name);
  const seconds = Math.floor((performance.now() - began) / 1000);
  console.log(`${name}: ${seen} after ${seconds} s, ${asked} request${asked === 1 ? "" : "s"}`);
}

const wait = { "retry-after": "3" };
await ask("npm, 3 s, timeout 1 s, aborted after 1.5 s", wait, AbortSignal.timeout(1500));
await ask("npm, 3 s and x-should-retry", { ...wait, "x-should-retry": "false" });
process.exit(0);
JAVASCRIPT
cat > "$place/try.py" <<'PYTHON'
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from openai import OpenAI, RateLimitError

asked = []


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        asked.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(429)
        self.send_header("retry-after", "3600")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
try:
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
except RateLimitError as fault:
    print(f"PyPI, an hour: {type(fault).__name__}, {len(asked)} request")
PYTHON
node "$place/try.mjs" | tee "$place/seen"
"$place/venv/bin/python" "$place/try.py" | tee -a "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(npm\|PyPI\), .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
