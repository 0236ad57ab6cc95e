// What a host answers, in any dialect, as one form:
//   {kind: "task", id, context, state, words, artifacts, history}     words: parts of the status message
//   {kind: "status", id, context, state, words}
//   {kind: "artifact", id, context, artifact: {id, name, parts}, append, last}
//   {kind: "message", id, context, words}
//   {kind: "tasks", tasks}
// A part is {text}, {file: {name, type, bytes or url}} or {data}. All of it is what strangers wrote: show it as text, never as HTML.

const SAME = { cancelled: "canceled", created: "submitted", unknown: "unknown" };
/** After these nothing follows. */
export const ENDED = new Set(["completed", "failed", "canceled", "rejected"]);

/** A state by its word in lower case, as in `input-required`. */
export function stateOf(status) {
  const told = status?.message?.metadata?.a2aState; // of a dialect that has no word for it
  const word = String(told ?? status?.state ?? "").replace(/^TASK_STATE_/, "").toLowerCase().replaceAll("_", "-");
  return SAME[word] ?? word;
}

/** How the parts of this dialect are read over this binding. */
export const manner = (spoken, rest) => ({ nested: Boolean(spoken.nested), doubled: false, ...(rest ? spoken.restReads : {}) });

export function read(said, how) {
  if (said === null || typeof said !== "object") return null;
  if (Array.isArray(said.tasks)) return { kind: "tasks", tasks: said.tasks.map((one) => task(one, how)) };
  if (said.task) return task(said.task, how);
  if (said.statusUpdate ?? said.status_update) return status(said.statusUpdate ?? said.status_update, how);
  if (said.artifactUpdate ?? said.artifact_update) return artifactUpdate(said.artifactUpdate ?? said.artifact_update, how);
  if (said.message && !said.status) return message(said.message, how);
  if (said.kind === "message" || said.messageId) return message(said, how);
  if (said.kind === "artifact-update" || said.artifact) return artifactUpdate(said, how);
  if (said.kind === "status-update" || "final" in said) return status(said, how);
  return said.status ? task(said, how) : null;
}

const partsOf = (message, how) => (message?.parts ?? message?.content ?? []).map((one) => part(one, how));

const task = (said, how) => ({
  kind: "task",
  id: said.id,
  context: said.contextId ?? said.sessionId ?? "",
  state: stateOf(said.status),
  at: said.status?.timestamp ?? "",
  words: partsOf(said.status?.message, how),
  artifacts: (said.artifacts ?? []).map((one) => artifact(one, how)),
  history: (said.history ?? []).map((one) => ({
    mine: String(one.role).toLowerCase().endsWith("user"), words: partsOf(one, how),
  })),
});

const status = (said, how) => ({
  kind: "status",
  id: said.taskId ?? said.id,
  context: said.contextId ?? said.sessionId ?? "",
  state: stateOf(said.status),
  words: partsOf(said.status?.message, how),
});

// The older dialects number artifacts, and say in the update itself whether it is a piece of one.
const artifactUpdate = (said, how) => ({
  kind: "artifact",
  id: said.taskId ?? said.id,
  context: said.contextId ?? said.sessionId ?? "",
  artifact: artifact(said.artifact, how),
  append: Boolean(said.append ?? said.artifact?.append),
  last: Boolean(said.lastChunk ?? said.artifact?.lastChunk),
});

const artifact = (said, how) => ({
  id: String(said.artifactId ?? said.index ?? 0),
  name: said.name ?? "",
  parts: partsOf(said, how),
});

const message = (said, how) => ({ kind: "message", id: said.taskId ?? "", context: said.contextId ?? "", words: partsOf(said, how) });

function part(said, how) {
  if (typeof said.text === "string") return { text: said.text };
  if (said.file) return { file: file(said.file, how) };
  if ("raw" in said) return { file: { name: said.filename, type: said.mediaType, bytes: said.raw } };
  if ("url" in said) return { file: { name: said.filename, type: said.mediaType, url: said.url } };
  return { data: how.nested && said.data && "data" in said.data ? said.data.data : said.data };
}

function file(said, how) {
  const written = said.bytes ?? said.fileWithBytes;
  const bytes = written !== undefined && how.doubled ? atob(written) : written;
  return { name: said.name, type: said.mimeType ?? said.mediaType, bytes, url: said.uri ?? said.fileWithUri };
}
