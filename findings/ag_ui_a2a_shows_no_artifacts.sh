#!/bin/sh
# Package:   @ag-ui/a2a 0.0.6 with @ag-ui/client 1.0.0 and @a2a-js/sdk 0.2.5 (npm)
# Behaviour: A2AAgent makes messages of the texts of statuses alone. Tasks and artifacts, where A2A has answers, become RAW
#            events that no page shows, so the user of such an agent sees nothing. A failed task ends as RUN_FINISHED, as a
#            completed one does. If the connection breaks, the message is sent once more, by message/send.
# Output:    completed, with an artifact: nothing read, RUN_FINISHED after message/stream
#            failed, with a reason: "No table is free" read, RUN_FINISHED after message/stream
#            failed, without words: nothing read, RUN_FINISHED after message/stream
#            broken at work: "One moment" read, RUN_FINISHED after message/stream u1, message/send u1
# Run:       sh findings/ag_ui_a2a_shows_no_artifacts.sh   (needs Node.js 20 and npm; a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
npm install --prefix "$place" --silent --no-fund --no-audit \
  @ag-ui/a2a@0.0.6 @ag-ui/client@1.0.0 @ag-ui/core@1.0.0 @a2a-js/sdk@0.2.5
cat > "$place/try.mjs" <<'JAVASCRIPT'
import http from "node:http";
import { A2AClient } from "@a2a-js/sdk/client";
import { A2AAgent } from "@ag-ui/a2a";

const ids = { taskId: "t", contextId: "c" };
const say = (text) => ({ kind: "message", messageId: "s", role: "agent", parts: [{ kind: "text", text }] });
const status = (state, text) => {
  const told = text && say(text);
  return { kind: "status-update", ...ids, final: state !== "working", status: { state, message: told } };
};
const artifact = { artifactId: "a", parts: [{ kind: "text", text: "A table is booked" }] };
const answers = {
  "completed, with an artifact": [{ kind: "artifact-update", ...ids, artifact }, status("completed")],
  "failed, with a reason": [status("failed", "No table is free")],
  "failed, without words": [status("failed")],
  "broken at work": [status("working", "One moment")],
};
let name, asked;
const server = http.createServer(async (request, response) => {
  if (request.method === "GET") return response.end(JSON.stringify({ url, capabilities: { streaming: true } }));
  let body = "";
  for await (const piece of request) body += piece;
  const { id, method, params } = JSON.parse(body);
  asked.push(name.startsWith("broken") ? `${method} ${params.message.messageId}` : method);
  const task = { kind: "task", id: "t", contextId: "c", status: { state: "submitted" } };
  const reply = (result) => JSON.stringify({ jsonrpc: "2.0", id, result });
  if (method === "message/send") return response.end(reply({ ...task, artifacts: [artifact] }));
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of [task, ...answers[name]]) response.write(`data: ${reply(event)}\n\n`);
  if (name.startsWith("broken")) setTimeout(() => response.destroy(), 500);
  else response.end();
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}`;
for (name of Object.keys(answers)) {
  asked = [];
  const initialMessages = [{ id: "u1", role: "user", content: "book" }];
  const agent = new A2AAgent({ a2aClient: new A2AClient(url), initialMessages });
  let last;
  const { newMessages } = await agent.runAgent({}, { onEvent: ({ event }) => void (last = event.type) });
  const read = newMessages.map((message) => JSON.stringify(message.content)).join() || "nothing";
  console.log(`${name}: ${read} read, ${last} after ${asked.join(", ")}`);
}
process.exit(0);
JAVASCRIPT
node "$place/try.mjs" 2>/dev/null | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(\(failed, \|broken \).*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
