// `node mcp_js.mjs URL VERSION`, in a folder that has @modelcontextprotocol/sdk: what the published client can do here.
// The variable CHECKS names the checks that are run; each is told as one line of JSON.
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import process from "node:process";

const require = createRequire(`${process.cwd()}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const [url] = process.argv.slice(2);
const word = () => randomUUID().slice(0, 12);

function same(found, wanted) {
  if (found !== wanted) throw new Error(`${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}

async function connected(act) {
  const client = new Client({ name: "campaign", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    return await act(client);
  } finally {
    await client.close();
  }
}

const call = (client, args, options) => client.callTool({ name: "demo", arguments: args }, undefined, options);

const checks = {
  lists: () =>
    connected(async (client) => {
      const { tools } = await client.listTools();
      same(tools.some(({ name }) => name === "demo"), true);
    }),
  calls: () =>
    connected(async (client) => {
      const said = word();
      same((await call(client, { message: `echo ${said}`, data: null })).content[0].text, said);
    }),
  streams: () =>
    connected(async (client) => {
      const told = [];
      const onprogress = ({ message }) => told.push(message);
      await call(client, { message: "sleep 1" }, { onprogress });
      same(told[0], "Sleeping 1 s");
    }),
  // The SDK keeps the stream open and sends `notifications/cancelled`: the task must end all the same.
  cancels: () =>
    connected(async (client) => {
      const said = word();
      const stop = new AbortController();
      let task;
      const onprogress = () => stop.abort();
      await call(client, { message: `ask ${said}` }).then((asked) => (task = asked._meta["a2a-host"]));
      const context = task.contextId;
      const sleeping = call(client, { message: "sleep 100", context }, { signal: stop.signal, onprogress });
      await sleeping.then(
        () => Promise.reject(new Error("it was not aborted")),
        () => undefined,
      );
      const params = { contextId: context, status: "TASK_STATE_CANCELED" };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params });
      const headers = { "content-type": "application/json", "a2a-version": "1.0" };
      for (let tries = 0; tries < 100; tries += 1) {
        const answer = await fetch(new URL("/agents/demo/", url), { method: "POST", headers, body });
        if ((await answer.json()).result.tasks.length) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error("the task goes on");
    }),
};

for (const check of process.env.CHECKS.split(",")) {
  let why = "";
  try {
    await checks[check]();
  } catch (error) {
    why = `${error.stack ?? error}`;
  }
  process.stdout.write(`${JSON.stringify({ binding: "MCP", check, why })}\n`);
}
