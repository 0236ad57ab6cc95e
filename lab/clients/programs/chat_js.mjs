// `node chat_js.mjs URL VERSION`, in a folder that has openai, ai and @ag-ui/client: what the published clients can do here.
// The variable CHECKS names the checks that are run, over each of BINDINGS; each is told as one line of JSON. KEY is their key.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.cwd()}/`);
const OpenAI = require("openai");
const { HttpAgent } = require("@ag-ui/client");
const { generateText, streamText } = require("ai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const [url] = process.argv.slice(2);
const { BINDINGS, CHECKS, KEY } = process.env;
const PATIENCE = 60_000;
const word = () => randomUUID().slice(0, 12);

function same(found, wanted) {
  const [left, right] = [found, wanted].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`${left} instead of ${right}`);
}

async function tasks(said) {
  const headers = { "x-api-key": KEY, "a2a-version": "1.0" };
  const answer = await fetch(`${url}/agents/demo/tasks?historyLength=5&pageSize=100`, { headers });
  return (await answer.json()).tasks.filter((task) => JSON.stringify(task).includes(said));
}

async function ended(said, state) {
  for (let tries = 0; tries < 300; tries += 1) {
    const found = await tasks(said);
    if (found.length && found.every(({ status }) => status.state === state)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`no ${state}: ${JSON.stringify(await tasks(said))}`);
}

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY });
const provider = createOpenAICompatible({ name: "host", baseURL: `${url}/v1`, apiKey: KEY });
const ask = (content, more) => client.chat.completions.create({ model: "demo", messages: [{ role: "user", content }], ...more });

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  return text;
}

const openai = {
  async chats() {
    const said = word();
    same((await ask(`echo ${said}`)).choices[0].message.content, said);
  },
  async streams() {
    const stream = await ask("chunks 20", { stream: true, stream_options: { include_usage: true } });
    same((await textOf(stream)).match(/#\d+;/g).length, 20);
  },
  async stops() {
    const headers = { "a2a-context-id": word() };
    const stream = await client.chat.completions.create(
      { model: "demo", stream: true, messages: [{ role: "user", content: "sleep 100" }] },
      { headers },
    );
    stream.controller.abort();
    await textOf(stream).catch(() => undefined);
    await ended(headers["a2a-context-id"], "TASK_STATE_CANCELED");
  },
  // It repeats a 500 although it is told not to, and does not say that it does.
  async repeats() {
    const said = word();
    await generateText({ model: provider("demo"), prompt: `fail ${said}` }).then(
      () => Promise.reject(new Error("it did not fail")),
      () => undefined,
    );
    same((await tasks(said)).length, 1);
  },
  // Its stream of text ends without an exception.
  async tells_failures() {
    const said = word();
    let text = "";
    for await (const piece of streamText({ model: provider("demo"), prompt: `fail ${said}`, onError: () => undefined }).textStream) text += piece;
    same(text, `[The agent failed: ${said}]`);
  },
};

function agent() {
  const events = [];
  const made = new HttpAgent({ url: `${url}/agents/demo/ag-ui`, headers: { authorization: `Bearer ${KEY}` } });
  made.subscribe({ onEvent: ({ event }) => void events.push(event) });
  const say = async (content, more) => {
    made.addMessage({ id: word(), role: "user", content });
    return made.runAgent(more);
  };
  return { made, events, say };
}

const texts = (messages) => messages.filter(({ role }) => role === "assistant").map(({ content }) => content);

const agui = {
  async runs() {
    const { made, say } = agent();
    for (const said of [word(), word()]) await say(`echo ${said}`).then(() => same(texts(made.messages).at(-1), said));
    same(made.messages.length, 4);
  },
  async interrupts() {
    const { made, say } = agent();
    const said = word();
    await say(`ask ${said}`);
    const [{ id, message }] = made.pendingInterrupts;
    same(message, said);
    await made.runAgent({ resume: [{ interruptId: id, status: "resolved", payload: "yes" }] });
    same(made.pendingInterrupts, []);
    same(texts(made.messages).length, 1);
    same((await tasks(said)).map(({ status }) => status.state), ["TASK_STATE_COMPLETED"]);
  },
  async fills_forms() {
    const { made, say } = agent();
    await say("form");
    const [{ id, responseSchema }] = made.pendingInterrupts;
    same(responseSchema.required, ["to", "people", "sure"]);
    const payload = { to: "Rome", people: 2, sure: true };
    await made.runAgent({ resume: [{ interruptId: id, status: "resolved", payload }] });
    same(made.pendingInterrupts, []);
  },
  async gives_up() {
    const { made, events, say } = agent();
    const said = word();
    await say(`ask ${said}`);
    const [{ id }] = made.pendingInterrupts;
    await made.runAgent({ resume: [{ interruptId: id, status: "cancelled" }] });
    same(events.at(-1).outcome, { type: "cancelled" });
    await ended(said, "TASK_STATE_CANCELED");
  },
  async fails() {
    const { events, say } = agent();
    const said = word();
    await say(`fail ${said}`);
    same([events.at(-1).type, events.at(-1).message], ["RUN_ERROR", said]);
  },
  async cancels() {
    const { made, events, say } = agent();
    const run = say("sleep 100");
    while (!events.some(({ type }) => type === "CUSTOM")) await new Promise((resolve) => setTimeout(resolve, 50));
    const { taskId } = events.find(({ type }) => type === "CUSTOM").value;
    made.abortRun();
    await run;
    same(events.at(-1).type, "RUN_ERROR");
    await ended(taskId, "TASK_STATE_CANCELED");
  },
};

const late = () => new Promise((_, reject) => setTimeout(() => reject(new Error("no end in time")), PATIENCE));
for (const [binding, checks] of Object.entries({ OPENAI: openai, "AG-UI": agui })) {
  if (!BINDINGS.split(",").includes(binding)) continue;
  for (const check of CHECKS.split(",")) {
    let why = "";
    try {
      await Promise.race([checks[check](), late()]);
    } catch (error) {
      why = `${error.stack ?? error}`;
    }
    process.stdout.write(`${JSON.stringify({ binding, check, why })}\n`);
  }
}
process.exit(0);
