// `node sdk_js_03.mjs CARD_URL VERSION ENDPOINT [AT]`, in a folder that has @a2a-js/sdk 0.3: what the published client can do here.
// The card must name ENDPOINT for its dialect. AT: talk to that URL instead.
import { createRequire } from "node:module";
import process from "node:process";
import { CODES, channelOf, converse, word } from "./conversation.mjs";

const require = createRequire(`${process.cwd()}/`);
const sdk = require("@a2a-js/sdk/client");
const { GrpcTransportFactory } = require("@a2a-js/sdk/client/grpc");
const [cardUrl, version, endpoint, at] = process.argv.slice(2);
const TRANSPORTS = {
  JSONRPC: sdk.JsonRpcTransportFactory,
  "HTTP+JSON": sdk.RestTransportFactory,
  GRPC: GrpcTransportFactory,
};
const ERRORS = [
  [sdk.TaskNotFoundError, CODES.notFound],
  [sdk.TaskNotCancelableError, CODES.notCancelable],
  [sdk.UnsupportedOperationError, CODES.unsupported],
];

const texts = (parts) => (parts ?? []).map((part) => part.text ?? "").join("");

function partOf({ kind, text, file, data }) {
  if (kind === "text") return { text };
  if (kind === "data") return { data: Object.fromEntries(Object.entries(data).sort()) };
  const about = { name: file.name, type: file.mimeType };
  if (file.uri) return { url: file.uri, ...about };
  return { bytes: Buffer.from(file.bytes, "base64").toString(), ...about };
}

function taskOf({ id, contextId, status, artifacts, history }) {
  return {
    kind: "task",
    id,
    contextId,
    state: status.state,
    said: texts(status.message?.parts),
    artifacts: (artifacts ?? []).map((artifact) => texts(artifact.parts)),
    parts: (artifacts ?? []).flatMap((artifact) => artifact.parts.map(partOf)),
    history: (history ?? []).map((message) => texts(message.parts)),
  };
}

function shown(found) {
  switch (found.kind) {
    case "task":
      return taskOf(found);
    case "message":
      return { kind: "message", said: texts(found.parts) };
    case "status-update":
      return { kind: "status", state: found.status.state };
    case "artifact-update":
      return {
        kind: "artifact",
        text: texts(found.artifact.parts),
        append: found.append ?? false,
        last: found.lastChunk ?? false,
      };
    default:
      throw new Error(`neither task nor message nor event: ${JSON.stringify(found)}`);
  }
}

async function* showing(stream) {
  for await (const event of stream) yield shown(event);
}

function request(text, { taskId, contextId, blocking = true } = {}) {
  const parts = [{ kind: "text", text }];
  const message = { kind: "message", messageId: word(), role: "user", parts, taskId, contextId };
  return { message, configuration: { blocking } };
}

function codeOf(error) {
  const known = ERRORS.find(([cls]) => error instanceof cls);
  return known ? known[1] : Number(/\(Code: (-?\d+)\)/.exec(error.message)?.[1] ?? 0);
}

function urlOf(card, binding) {
  if ((card.preferredTransport ?? "JSONRPC") === binding) return card.url;
  return card.additionalInterfaces?.find((other) => other.transport === binding)?.url;
}

function moved(card, url) {
  const additionalInterfaces = card.additionalInterfaces?.map((other) => ({ ...other, url }));
  return { ...card, url, additionalInterfaces };
}

async function connect(binding) {
  const card = await new sdk.DefaultAgentCardResolver().resolve(cardUrl, "");
  const { url, ...options } = binding === "GRPC" ? channelOf(urlOf(card, binding), require) : {};
  const factory = new sdk.ClientFactory({ transports: [new TRANSPORTS[binding](options)] });
  const client = await factory.createFromAgentCard((at ?? url) ? moved(card, at ?? url) : card);
  return {
    wanted: { version, url: endpoint, ended: CODES.badParams },
    version: card.protocolVersion.split(".", 2).join("."),
    url: urlOf(card, binding),
    code: codeOf,
    rough: binding !== "JSONRPC",
    send: async (text, more) => shown(await client.sendMessage(request(text, more))),
    stream: (text, more) => showing(client.sendMessageStream(request(text, more))),
    get: async (id, historyLength) => taskOf(await client.getTask({ id, historyLength })),
    cancel: async (id) => taskOf(await client.cancelTask({ id })),
    resubscribe: (id) => showing(client.resubscribeTask({ id })),
    extendedCard: () => client.getAgentCard(),
  };
}

await converse(connect);
