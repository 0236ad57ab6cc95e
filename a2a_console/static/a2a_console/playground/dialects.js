// What a client says in each dialect of A2A: one entry a dialect, the differences as data. Reading is in reading.js.
// The tables that this follows are in docs/protocol-support.md.

const known = (object) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== ""));

// Parts of a message

/** Up to 0.3, over JSON-RPC: every part says what it is, in a member of this name. */
const labelled = (label) => ({
  text: (text) => ({ [label]: "text", text }),
  file: ({ name, type, bytes }) => ({ [label]: "file", file: { name, mimeType: type, bytes } }),
});
/** ProtoJSON of 0.2 and 0.3: released clients put base64 into a field of bytes, which is written in base64 again. */
const protoParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ file: { name, mimeType: type, fileWithBytes: btoa(bytes) } }),
};
/** The same message in the draft's gRPC, where bytes are bytes. */
const rpcParts = { ...protoParts, file: ({ name, type, bytes }) => ({ file: { name, mimeType: type, fileWithBytes: bytes } }) };
const draftParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ file: { name, mediaType: type, fileWithBytes: bytes } }),
};
const plainParts = {
  text: (text) => ({ text }),
  file: ({ name, type, bytes }) => ({ raw: bytes, filename: name, mediaType: type }),
};

const partsOf = (said, form) => [
  ...(said.text || !said.files.length ? [form.text(said.text)] : []),
  ...said.files.map(form.file),
];

// Parameters of a send. `said`: {id, text, files, task, context, webhook: {url, token} or undefined, wait}

/** seed-0, 0.0 and 0.1: the client names the task. */
const named = (said, { inlineWebhook }) => known({
  id: said.task,
  sessionId: said.context,
  message: { role: "user", parts: partsOf(said, labelled("type")) },
  pushNotification: inlineWebhook ? said.webhook : undefined,
});
const message = (said, role, parts, more = {}) => known({
  ...more, role, messageId: said.id, taskId: said.task, contextId: said.context, ...parts,
});
const textual = (said) => ({
  message: message(said, "user", { parts: partsOf(said, labelled("kind")) }, { kind: "message" }),
  configuration: known({ blocking: said.wait, pushNotificationConfig: said.webhook }),
});
const proto = (said, form = protoParts) => ({
  message: message(said, "ROLE_USER", { content: partsOf(said, form) }),
  configuration: known({ blocking: said.wait, pushNotification: said.webhook }),
});
const draft = (said) => ({
  message: message(said, "user", { parts: partsOf(said, draftParts) }),
  configuration: known({ blocking: said.wait, pushNotificationConfig: said.webhook }),
});
const current = (said) => ({
  message: message(said, "ROLE_USER", { parts: partsOf(said, plainParts) }),
  configuration: known({ returnImmediately: said.wait ? undefined : true, taskPushNotificationConfig: said.webhook }),
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
const routes = (prefix, lists) => ({
  send: () => ["POST", `${prefix}/message:send`],
  stream: () => ["POST", `${prefix}/message:stream`],
  get: (task) => ["GET", `${prefix}/tasks/${encodeURIComponent(task)}`],
  cancel: (task) => ["POST", `${prefix}/tasks/${encodeURIComponent(task)}:cancel`],
  subscribe: (task) => ["POST", `${prefix}/tasks/${encodeURIComponent(task)}:subscribe`],
  ...(lists ? { list: () => ["GET", `${prefix}/tasks`] } : {}),
});

/** The package up to 0.3, which the draft has, too: its streams of a task had another name. */
const OLD_RPC = {
  service: "a2a.v1.A2AService", rpcs: { ...PASCAL, subscribe: "TaskSubscription", list: undefined },
  send: (said) => proto(said), named: (task) => ({ name: `tasks/${task}` }),
};

/**
 * One dialect:
 *   mount      the path below an agent that speaks it and nothing else
 *   methods    by operation; what is not there the dialect has not
 *   routes     the same over HTTP+JSON; null: the dialect has none
 *   send       parameters of a send over JSON-RPC, `restSend` over HTTP+JSON
 *   namesTask  the client names a new task, and its session
 *   waitsForAuth  where the agent needs a credential, too, a stream of a send ends
 *   nested, doubled  how parts are read back (reading.js)
 *   grpc       its gRPC, if there is one: service, rpcs by operation, what a send says, how a task is named
 */
export const DIALECTS = [
  {
    code: "v10", name: "1.0", mount: "a2a/1.0", version: "1.0", methods: PASCAL, routes: routes("", true),
    send: current, restSend: current,
    grpc: { service: "lf.a2a.v1.A2AService", rpcs: PASCAL, send: current, named: (task) => ({ id: task }) },
  },
  {
    code: "dr", name: "1.0 draft", mount: "a2a/1.0-draft", version: "1.0", methods: PASCAL, routes: routes("/v1", true),
    send: draft, restSend: draft, nested: true, 
    grpc: { ...OLD_RPC, rpcs: PASCAL, send: (said) => proto(said, rpcParts) },
  },
  {
    code: "v03", name: "0.3", mount: "a2a/0.3", version: "0.3", methods: { ...SLASHED, list: "tasks/list" },
    routes: routes("/v1", true), send: textual, restSend: proto, restReads: { nested: true, doubled: true },
    grpc: OLD_RPC,
  },
  {
    code: "v02", name: "0.2", mount: "a2a/0.2", version: "0.2", methods: SLASHED, routes: routes("/v1", false),
    send: textual, restSend: proto, restReads: { nested: true, doubled: true }, grpc: OLD_RPC,
  },
  {
    code: "v01", name: "0.1", mount: "a2a/0.1", version: "0.1", methods: OLD, routes: null,
    send: (said) => named(said, { inlineWebhook: true }), namesTask: true, waitsForAuth: true,
  },
  {
    code: "v00", name: "0.0 (April 2025)", mount: "a2a/0.0", version: "0.0", methods: OLD, routes: null,
    send: (said) => named(said, { inlineWebhook: true }), namesTask: true, waitsForAuth: true,
  },
  {
    code: "s0", name: "seed-0", mount: "a2a/seed-0", version: "", methods: { ...OLD, subscribe: undefined }, routes: null,
    send: (said) => named(said, { inlineWebhook: false }), namesTask: true, waitsForAuth: true,
    setWebhook: { method: "tasks/pushNotification/set", params: (said) => ({ id: said.task, url: said.webhook.url }) },
  },
];

export const JSON_RPC = "JSONRPC";
export const HTTP_JSON = "HTTP+JSON";
export const GRPC = "GRPC";

export const dialect = (code) => DIALECTS.find((one) => one.code === code) ?? DIALECTS[0];

/** Can the dialect be asked for this at all? */
export const has = (spoken, operation) => Boolean(spoken.methods[operation]);

/** The rpc of an operation and the JSON of its message: {path, body}; null if there is none. */
export function rpcOf({ grpc }, operation, said) {
  const name = grpc?.rpcs[operation];
  if (!name) return null;
  const sends = operation === "send" || operation === "stream";
  const body = sends ? grpc.send(said) : operation === "list" ? { pageSize: 20 } : grpc.named(said.task);
  return { path: `${grpc.service}/${name}`, body };
}

let asked = 0;

/**
 * What has to be sent for an operation: {operation, said, method, path, headers, body, streams}; body is a value or null.
 * Of `said`: for send and stream as above; else {task}; for list nothing.
 */
export function request(spoken, binding, operation, said) {
  const streams = operation === "stream" || operation === "subscribe";
  const headers = { "Content-Type": "application/json", Accept: streams ? "text/event-stream" : "application/json" };
  if (spoken.version) headers["A2A-Version"] = spoken.version;
  const made = { operation, said, streams, headers };
  return binding === HTTP_JSON ? restful(spoken, made) : rpc(spoken, made);
}

function rpc(spoken, made) {
  const { operation, said } = made;
  const params = operation === "webhook" ? spoken.setWebhook.params(said) : parameters(spoken.send, operation, said);
  const method = operation === "webhook" ? spoken.setWebhook.method : spoken.methods[operation];
  return { ...made, method: "POST", path: "", body: { jsonrpc: "2.0", id: ++asked, method, params } };
}

function restful(spoken, made) {
  const { operation, said } = made;
  const [method, path] = spoken.routes[operation](said.task ?? "");
  const sends = operation === "send" || operation === "stream";
  return { ...made, method, path, body: sends ? spoken.restSend(said) : null };
}

function parameters(send, operation, said) {
  if (operation === "send" || operation === "stream") return send(said);
  return operation === "list" ? { pageSize: 20 } : { id: said.task };
}
