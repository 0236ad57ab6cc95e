// `node sdk_js_10.mjs CARD_URL VERSION ENDPOINT [AT]`, in a folder that has @a2a-js/sdk 1.x: what the published client can do here.
// The card must name ENDPOINT for VERSION; 0.3 is spoken by the client's compatibility layer. AT: talk to that URL instead.
import { createRequire } from "node:module";
import process from "node:process";
import { CODES, channelOf, converse, word } from "./conversation.mjs";

const require = createRequire(`${process.cwd()}/`);
const sdk = require("@a2a-js/sdk/client");
const { GrpcTransportFactory } = require("@a2a-js/sdk/client/grpc");
const { Role, TaskState } = require("@a2a-js/sdk");
const [cardUrl, version, endpoint, at] = process.argv.slice(2);
const legacy = version.startsWith("0.");
const TRANSPORTS = {
  JSONRPC: sdk.JsonRpcTransportFactory,
  "HTTP+JSON": sdk.RestTransportFactory,
  GRPC: GrpcTransportFactory,
};
const REASONS = {
  TASK_NOT_FOUND: CODES.notFound,
  TASK_NOT_CANCELABLE: CODES.notCancelable,
  UNSUPPORTED_OPERATION: CODES.unsupported,
  INVALID_PARAMS: CODES.badParams,
};

const texts = (parts) =>
  (parts ?? []).map(({ content }) => (content.$case === "text" ? content.value : "")).join("");
const stateOf = (status) =>
  TaskState[status.state].replace("TASK_STATE_", "").replace("_", "-").toLowerCase();

function partOf({ content, filename, mediaType }) {
  const about = { name: filename, type: mediaType };
  switch (content.$case) {
    case "text":
      return { text: content.value };
    case "raw":
      return { bytes: content.value.toString(), ...about };
    case "url":
      return { url: content.value, ...about };
    default:
      return { data: Object.fromEntries(Object.entries(content.value).sort()) };
  }
}

function taskOf({ id, contextId, status, artifacts, history }) {
  return {
    kind: "task",
    id,
    contextId,
    state: stateOf(status),
    said: texts(status.message?.parts),
    artifacts: artifacts.map((artifact) => texts(artifact.parts)),
    parts: artifacts.flatMap((artifact) => artifact.parts.map(partOf)),
    history: history.map((message) => texts(message.parts)),
  };
}

const messageOf = (message) => ({ kind: "message", said: texts(message.parts) });

async function* showing(stream) {
  for await (const { payload } of stream) {
    const { $case, value } = payload;
    if ($case === "task") yield taskOf(value);
    else if ($case === "message") yield messageOf(value);
    else if ($case === "statusUpdate") yield { kind: "status", state: stateOf(value.status) };
    else {
      const { artifact, append, lastChunk } = value;
      yield { kind: "artifact", text: texts(artifact.parts), append, last: lastChunk };
    }
  }
}

function request(text, { taskId = "", contextId = "", blocking = true } = {}) {
  const content = { $case: "text", value: text };
  const message = {
    messageId: word(),
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
    taskId,
    contextId,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  return { tenant: "", message, configuration: { returnImmediately: !blocking } };
}

function codeOf(error) {
  return REASONS[error.reason] ?? Number(/\(Code: (-?\d+)\)/.exec(error.message)?.[1] ?? 0);
}

function interfaceOf(card, binding) {
  return card.supportedInterfaces.find(
    (one) => one.protocolBinding === binding && one.protocolVersion.startsWith(version),
  );
}

async function connect(binding) {
  const legacyCompat = { enabled: legacy };
  const resolver = new sdk.DefaultAgentCardResolver({ legacyCompat });
  const card = await resolver.resolve(cardUrl, "");
  const found = interfaceOf(card, binding);
  const { url, ...options } = binding === "GRPC" ? channelOf(found.url, require) : found;
  const transport = new TRANSPORTS[binding]({ legacyCompat, ...options });
  const factory = new sdk.ClientFactory({ transports: [transport], cardResolver: resolver });
  const chosen = { ...found, url: at ?? url };
  const client = await factory.createFromAgentCard({ ...card, supportedInterfaces: [chosen] });
  return {
    wanted: { version, url: endpoint, ended: legacy ? CODES.badParams : CODES.unsupported },
    version: client.protocolVersion,
    url: found.url,
    code: codeOf,
    rough: legacy && binding !== "JSONRPC",
    send: async (text, more) => {
      const answer = await client.sendMessage(request(text, more));
      return "status" in answer ? taskOf(answer) : messageOf(answer);
    },
    stream: (text, more) => showing(client.sendMessageStream(request(text, more))),
    get: async (id, historyLength) =>
      taskOf(await client.getTask({ tenant: "", id, historyLength })),
    cancel: async (id) => taskOf(await client.cancelTask({ tenant: "", id, metadata: undefined })),
    resubscribe: (id) => showing(client.resubscribeTask({ tenant: "", id })),
    extendedCard: () => client.getAgentCard(),
  };
}

await converse(connect);
