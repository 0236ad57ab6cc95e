// The requests of a client in each dialect of A2A: one entry for each dialect, with the differences as data. reading.js reads answers.
// It follows the tables of docs/reference/protocol-support.md.

const withoutEmpty = (object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== ""));

// Parts of a message

/** Up to 0.3, over JSON-RPC: every part has its kind in a member of this name. */
const labelled = (label) => ({
  text: (text) => ({ [label]: "text", text }),
  file: ({ name, type, bytes }) => ({ [label]: "file", file: { name, mimeType: type, bytes } }),
  data: (data) => ({ [label]: "data", data }),
});
/** ProtoJSON of 0.2 and 0.3: released clients put base64 into a field of bytes, which is written in base64 again. */
const protoParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ file: { name, mimeType: type, fileWithBytes: btoa(bytes) } }),
  data: (data) => ({ data: { data } }),
};
/** This message in gRPC, where bytes are not encoded twice. */
const rpcParts = { ...protoParts, file: ({ name, type, bytes }) => ({ file: { name, mimeType: type, fileWithBytes: bytes } }) };
const draftParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ file: { name, mediaType: type, fileWithBytes: bytes } }),
  data: (data) => ({ data: { data } }),
};
const plainParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ raw: bytes, filename: name, mediaType: type }),
  data: (data) => ({ data }),
};

const partsOf = (input, form) => [
  ...(input.data === undefined ? [] : [form.data(input.data)]),
  ...(input.text || (!input.files.length && input.data === undefined) ? [form.text(input.text)] : []),
  ...input.files.map(form.file),
];

// Parameters of a send. `input`: {id, text, data (undefined: none), files, task, context, webhook: {url, token} or undefined, wait}

/** seed-0, 0.0 and 0.1: the client names the task. */
const clientNamed = (input, { inlineWebhook }) => withoutEmpty({
  id: input.task,
  sessionId: input.context,
  message: { role: "user", parts: partsOf(input, labelled("type")) },
  pushNotification: inlineWebhook ? input.webhook : undefined,
});
const message = (input, role, parts, more = {}) => withoutEmpty({
  ...more, role, messageId: input.id, taskId: input.task, contextId: input.context, ...parts,
});
const textual = (input) => ({
  message: message(input, "user", { parts: partsOf(input, labelled("kind")) }, { kind: "message" }),
  configuration: withoutEmpty({ blocking: input.wait, pushNotificationConfig: input.webhook }),
});
const proto = (input, form = protoParts) => ({
  message: message(input, "ROLE_USER", { content: partsOf(input, form) }),
  configuration: withoutEmpty({ blocking: input.wait, pushNotification: input.webhook }),
});
const draft = (input) => ({
  message: message(input, "user", { parts: partsOf(input, draftParts) }),
  configuration: withoutEmpty({ blocking: input.wait, pushNotificationConfig: input.webhook }),
});
const current = (input) => ({
  message: message(input, "ROLE_USER", { parts: partsOf(input, plainParts) }),
  configuration: withoutEmpty({ returnImmediately: input.wait ? undefined : true, taskPushNotificationConfig: input.webhook }),
});

// Methods of JSON-RPC, and routes of HTTP+JSON

const OLD = {
  send: "tasks/send", stream: "tasks/sendSubscribe", get: "tasks/get", cancel: "tasks/cancel",
  subscribe: "tasks/resubscribe",
};
const SLASHED = {
  send: "message/send", stream: "message/stream", get: "tasks/get", cancel: "tasks/cancel",
  subscribe: "tasks/resubscribe",
};
const PASCAL = {
  send: "SendMessage", stream: "SendStreamingMessage", get: "GetTask", cancel: "CancelTask",
  subscribe: "SubscribeToTask", list: "ListTasks",
};
const routes = (prefix) => ({
  send: () => ["POST", `${prefix}/message:send`],
  stream: () => ["POST", `${prefix}/message:stream`],
  get: (task) => ["GET", `${prefix}/tasks/${encodeURIComponent(task)}`],
  cancel: (task) => ["POST", `${prefix}/tasks/${encodeURIComponent(task)}:cancel`],
  subscribe: (task) => ["POST", `${prefix}/tasks/${encodeURIComponent(task)}:subscribe`],
});

/** The package up to 0.3, which the draft has, too: its streams of a task had another name. */
const OLD_RPC = {
  service: "a2a.v1.A2AService", rpcs: { ...PASCAL, subscribe: "TaskSubscription" },
  send: (input) => proto(input), nameOf: (task) => ({ name: `tasks/${task}` }),
};

/**
 * One dialect:
 *   mount      the path below an agent that speaks it and nothing else
 *   methods    by operation; the dialect lacks the others
 *   routes     those of HTTP+JSON; null: the dialect has none
 *   send       parameters of a send over JSON-RPC, `restSend` over HTTP+JSON
 *   namesTask  the client names a new task, and its session
 *   waitsForAuth  the stream of a send ends at auth-required, too
 *   nested, doubled  the format of parts in answers (reading.js)
 *   grpc       its gRPC, if there is one: service, rpcs by operation, messages of a send and of a task name
 */
export const DIALECTS = [
  {
    code: "v10", name: "1.0", mount: "a2a/1.0", version: "1.0", methods: PASCAL, routes: routes(""),
    send: current, restSend: current,
    grpc: { service: "lf.a2a.v1.A2AService", rpcs: PASCAL, send: current, nameOf: (task) => ({ id: task }) },
  },
  {
    code: "dr", name: "1.0 draft", mount: "a2a/1.0-draft", version: "1.0", methods: PASCAL, routes: routes("/v1"),
    send: draft, restSend: draft, nested: true, 
    grpc: { ...OLD_RPC, rpcs: PASCAL, send: (input) => proto(input, rpcParts) },
  },
  {
    code: "v03", name: "0.3", mount: "a2a/0.3", version: "0.3", methods: SLASHED,
    routes: routes("/v1"), send: textual, restSend: proto, restReads: { nested: true, doubled: true },
    grpc: OLD_RPC,
  },
  {
    code: "v02", name: "0.2", mount: "a2a/0.2", version: "0.2", methods: SLASHED, routes: routes("/v1"),
    send: textual, restSend: proto, restReads: { nested: true, doubled: true }, grpc: OLD_RPC,
  },
  {
    code: "v01", name: "0.1", mount: "a2a/0.1", version: "0.1", methods: OLD, routes: null,
    send: (input) => clientNamed(input, { inlineWebhook: true }), namesTask: true, waitsForAuth: true,
  },
  {
    code: "v00", name: "0.0 (April 2025)", mount: "a2a/0.0", version: "0.0", methods: OLD, routes: null,
    send: (input) => clientNamed(input, { inlineWebhook: true }), namesTask: true, waitsForAuth: true,
  },
  {
    code: "s0", name: "seed-0", mount: "a2a/seed-0", version: "", methods: { ...OLD, subscribe: undefined }, routes: null,
    send: (input) => clientNamed(input, { inlineWebhook: false }), namesTask: true, waitsForAuth: true,
    setWebhook: { method: "tasks/pushNotification/set", params: (input) => ({ id: input.task, url: input.webhook.url }) },
  },
];

export const JSON_RPC = "JSONRPC";
export const HTTP_JSON = "HTTP+JSON";
export const GRPC = "GRPC";

export const findDialect = (code) => DIALECTS.find((one) => one.code === code) ?? DIALECTS[0];

/** True if the dialect has the operation. */
export const has = (dialect, operation) => Boolean(dialect.methods[operation]);

/** The rpc of an operation and the JSON of its message: {path, body}; null if there is none. */
export function rpcOf({ grpc }, operation, input) {
  const name = grpc?.rpcs[operation];
  if (!name) return null;
  const sends = operation === "send" || operation === "stream";
  return { path: `${grpc.service}/${name}`, body: sends ? grpc.send(input) : grpc.nameOf(input.task) };
}

let lastId = 0;

/**
 * The request for an operation: {operation, input, method, path, headers, body, streams}; body is a value or null.
 * Of `input`: for send and stream as above; else {task}; for list nothing.
 */
export function request(dialect, binding, operation, input) {
  const streams = operation === "stream" || operation === "subscribe";
  const headers = { "Content-Type": "application/json", Accept: streams ? "text/event-stream" : "application/json" };
  if (dialect.version) headers["A2A-Version"] = dialect.version;
  const common = { operation, input, streams, headers };
  return binding === HTTP_JSON ? restful(dialect, common) : rpc(dialect, common);
}

function rpc(dialect, common) {
  const { operation, input } = common;
  const params = operation === "webhook" ? dialect.setWebhook.params(input) : parameters(dialect.send, operation, input);
  const method = operation === "webhook" ? dialect.setWebhook.method : dialect.methods[operation];
  return { ...common, method: "POST", path: "", body: { jsonrpc: "2.0", id: ++lastId, method, params } };
}

function restful(dialect, common) {
  const { operation, input } = common;
  const [method, path] = dialect.routes[operation](input.task ?? "");
  const sends = operation === "send" || operation === "stream";
  return { ...common, method, path, body: sends ? dialect.restSend(input) : null };
}

function parameters(send, operation, input) {
  if (operation === "send" || operation === "stream") return send(input);
  return operation === "list" ? { pageSize: 30, historyLength: 10 } : { id: input.task };
}
