#!/bin/sh
# Package:   a2a-ai-provider 0.5.0-alpha.1 with ai 6.0.326 (npm), A2A for Vercel's AI SDK
# Behaviour: when it streams it takes the state of a status update and leaves out its message. An agent that asks, or says
#            why it failed, ends with what came before, and the user never reads the question. Without streaming the
#            message is the text, but then each end is "stop", also that of a failed task.
# Output:    input-required, generateText: "Which table?" stop
#            input-required, streamText: "So far. " stop
#            failed, generateText: "No disk." stop
#            failed, streamText: "So far. " error
# Run:       sh findings/a2a_ai_provider_loses_streamed_questions.sh   (needs Node.js 20 and npm; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
npm install --silent --no-fund --no-audit a2a-ai-provider@0.5.0-alpha.1 ai@6.0.326
cat > try.mjs <<'JAVASCRIPT'
import http from "node:http";
import { generateText, streamText } from "ai";
import { a2a } from "a2a-ai-provider";

const say = console.log;
console.log = () => {}; // the provider logs each event
globalThis.AI_SDK_LOG_WARNINGS = false;
const TASK = { kind: "task", id: "1", contextId: "2" };
const IDS = { taskId: "1", contextId: "2" };
const CARD = {
  protocolVersion: "0.3.0", name: "Host", description: "Books tables", version: "1",
  preferredTransport: "JSONRPC", capabilities: { streaming: true }, skills: [],
  defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
};
const parts = (text) => [{ kind: "text", text }];
let status;

function serve(request, response) {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    if (request.method === "GET") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...CARD, url }));
      return;
    }
    const asked = JSON.parse(Buffer.concat(chunks));
    const answer = (result) => JSON.stringify({ jsonrpc: "2.0", id: asked.id, result });
    if (asked.method === "message/send") {
      response.setHeader("content-type", "application/json");
      response.end(answer({ ...TASK, status }));
      return;
    }
    response.setHeader("content-type", "text/event-stream");
    for (const event of [
      { ...TASK, status: { state: "working" } },
      { kind: "artifact-update", ...IDS, artifact: { artifactId: "a", parts: parts("So far. ") } },
      { kind: "status-update", ...IDS, status, final: true },
    ]) response.write(`data: ${answer(event)}\n\n`);
    response.end();
  });
}

const server = http.createServer(serve);
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}/`;
const asking = { model: a2a(`${url}.well-known/agent-card.json`), prompt: "A table for two", maxRetries: 0 };
for (const [state, words] of [["input-required", "Which table?"], ["failed", "No disk."]]) {
  status = { state, message: { kind: "message", role: "agent", messageId: "m", parts: parts(words) } };
  const whole = await generateText(asking);
  say(`${state}, generateText: ${JSON.stringify(whole.text)} ${whole.finishReason}`);
  const stream = streamText(asking);
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  say(`${state}, streamText: ${JSON.stringify(text)} ${await stream.finishReason}`);
}
process.exit(0);
JAVASCRIPT
node try.mjs > seen
cat seen
cd - > /dev/null
sed -n 's/^# Output:    //p; s/^#            \(.*, \(generate\|stream\)Text: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
