// The answers of a host, in any dialect, in one form:
//   {kind: "task", id, context, state, words, artifacts, history}     words: parts of the status message
//   {kind: "status", id, context, state, at, words}
//   {kind: "artifact", id, context, artifact: {id, name, parts}, append, last}
//   {kind: "message", id, context, words}
//   {kind: "tasks", tasks}
// A part is {text}, {file: {name, type, bytes or url}}, {data} or {form}: the JSON Schema of a question. Strangers wrote it: show it as text, never as HTML.

const SAME = { cancelled: "canceled", created: "submitted", unknown: "unknown" };
/** After these nothing follows. */
export const ENDED = new Set(["completed", "failed", "canceled", "rejected"]);

/** A state by its word in lower case, as in `input-required`. */
export function stateOf(status) {
  const exact = status?.message?.metadata?.a2aState; // of a dialect that has no name for the state
  const name = String(exact ?? status?.state ?? "").replace(/^TASK_STATE_/, "").toLowerCase().replaceAll("_", "-");
  return SAME[name] ?? name;
}

/** The format of parts in this dialect over this binding. */
export const formatOf = (dialect, rest) => ({ nested: Boolean(dialect.nested), doubled: false, ...(rest ? dialect.restReads : {}) });

export function read(value, format) {
  if (value === null || typeof value !== "object") return null;
  if (Array.isArray(value.tasks)) return { kind: "tasks", tasks: value.tasks.map((one) => task(one, format)) };
  if (value.task) return task(value.task, format);
  if (value.statusUpdate ?? value.status_update) return status(value.statusUpdate ?? value.status_update, format);
  if (value.artifactUpdate ?? value.artifact_update) return artifactUpdate(value.artifactUpdate ?? value.artifact_update, format);
  if (value.message && !value.status) return message(value.message, format);
  if (value.kind === "message" || value.messageId) return message(value, format);
  if (value.kind === "artifact-update" || value.artifact) return artifactUpdate(value, format);
  if (value.kind === "status-update" || "final" in value) return status(value, format);
  return value.status ? task(value, format) : null;
}

/** The extension that tells the usage of models. */
export const USAGE = "urn:a2a-host:extensions:usage:1";

/** The usage of models as a line; "" without one. */
const usageOf = (models) => Object.entries(models ?? {}).map(([name, one]) =>
  [name, one?.inputTokens && `${one.inputTokens} tokens in`, one?.outputTokens && `${one.outputTokens} out`, one?.cost && `${one.cost} ${one.currency}`].filter(Boolean).join(" · ")).join("; ");

/** The call of a tool {id, name, args}, or its result {id, content, error}, that a status tells; undefined: none. */
export function callOf(words) {
  const { toolCall: call, toolResult: result } = (words.length === 1 && words[0].data) || {};
  if (typeof call?.name === "string") return { id: String(call.id), name: call.name, args: call.arguments };
  return result && "content" in result ? { id: String(result.id), content: result.content, error: result.error } : undefined;
}

const partsOf = (message, format) => (message?.parts ?? message?.content ?? []).map((one) => part(one, format));

const task = (value, format) => ({
  kind: "task",
  id: value.id,
  context: value.contextId ?? value.sessionId ?? "",
  state: stateOf(value.status),
  at: value.status?.timestamp ?? "",
  words: partsOf(value.status?.message, format),
  usage: usageOf(value.metadata?.[USAGE]),
  artifacts: (value.artifacts ?? []).map((one) => artifact(one, format)),
  history: (value.history ?? []).map((one) => ({
    mine: String(one.role).toLowerCase().endsWith("user"), words: partsOf(one, format),
  })),
});

const status = (value, format) => ({
  kind: "status",
  id: value.taskId ?? value.id,
  context: value.contextId ?? value.sessionId ?? "",
  state: stateOf(value.status),
  at: value.status?.timestamp ?? "",
  words: partsOf(value.status?.message, format),
});

// The older dialects number artifacts, and mark pieces in the artifact itself.
const artifactUpdate = (value, format) => ({
  kind: "artifact",
  id: value.taskId ?? value.id,
  context: value.contextId ?? value.sessionId ?? "",
  artifact: artifact(value.artifact, format),
  append: Boolean(value.append ?? value.artifact?.append),
  last: Boolean(value.lastChunk ?? value.artifact?.lastChunk),
});

const artifact = (value, format) => ({
  id: String(value.artifactId ?? value.index ?? 0),
  name: value.name ?? "",
  parts: partsOf(value, format),
});

const message = (value, format) => ({ kind: "message", id: value.taskId ?? "", context: value.contextId ?? "", words: partsOf(value, format) });

function part(value, format) {
  if (typeof value.text === "string") return { text: value.text };
  if (value.file) return { file: file(value.file, format) };
  if ("raw" in value) return { file: { name: value.filename, type: value.mediaType, bytes: value.raw } };
  if ("url" in value) return { file: { name: value.filename, type: value.mediaType, url: value.url } };
  const data = format.nested && value.data && "data" in value.data ? value.data.data : value.data;
  return isForm(data?.form) ? { form: data.form } : { data };
}

/** An object whose properties are schemas. Only hosts of A2A 0.2 and later name the extension, so the content decides. */
const isForm = (form) => form?.type === "object" && Object.values(form.properties ?? {}).every((one) => one && typeof one === "object");

function file(value, format) {
  const text = value.bytes ?? value.fileWithBytes;
  const bytes = text !== undefined && format.doubled ? atob(text) : text;
  return { name: value.name, type: value.mimeType ?? value.mediaType, bytes, url: value.uri ?? value.fileWithUri };
}
