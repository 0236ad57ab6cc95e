// One request and its answer; a watcher sees everything that goes over the wire.

import { frames } from "./sse.js";

/** The host answered, and refused. */
export class Fault extends Error {
  constructor(message, { status = 0, error = null } = {}) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

/** The connection was lost, or the host is overloaded: try again. */
export class Cut extends Error {}

const LATER = new Set([429, 502, 503, 504]);

/** Send; return the answer when its head has arrived. Calls sent, answered, got, ended of `watch`. Throws Cut or an AbortError. */
async function post(base, request, headers, signal, watch) {
  const url = base + request.path;
  const body = request.body === null ? undefined : JSON.stringify(request.body);
  const all = { ...request.headers, ...headers };
  if (body === undefined) delete all["Content-Type"];
  watch.sent({ ...request, url, headers: all, text: body });
  try {
    const answer = await fetch(url, { method: request.method, headers: all, body, signal, credentials: "omit", cache: "no-store" });
    watch.answered(answer.status, answer.headers);
    return answer;
  } catch (fault) {
    throw cut(fault, watch);
  }
}

function cut(fault, watch) {
  if (fault.name === "AbortError") return fault;
  watch.ended(`The connection was lost: ${fault.message}`);
  return new Cut(fault.message);
}

/** Ask for one answer: the result. Throws Fault, Cut or an AbortError. */
export async function ask(url, request, { headers = {}, signal, watch }) {
  const answer = await post(url, request, headers, signal, watch);
  try {
    return await result(answer, watch);
  } catch (fault) {
    throw fault instanceof Fault || fault instanceof Cut ? fault : cut(fault, watch);
  }
}

/** Ask for a stream: {id, result} for each event. Ends where the host ends it. Throws Fault, Cut or an AbortError. */
export async function* listen(url, request, { headers = {}, signal, watch }) {
  const answer = await post(url, request, headers, signal, watch);
  if (!(answer.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    yield { id: null, result: await result(answer, watch) }; // an answer, or a refusal, in place of a stream
    return;
  }
  try {
    for await (const frame of frames(answer.body)) {
      const value = frame.data === null ? null : JSON.parse(frame.data);
      watch.got(frame, value);
      if (value !== null) yield { id: frame.id, result: opened(value, frame.event === "error") };
    }
    watch.ended("");
  } catch (fault) {
    throw fault instanceof Fault ? fault : cut(fault, watch);
  }
}

async function result(answer, watch) {
  const text = await answer.text();
  const value = parsed(text);
  watch.got({ id: null, data: text, comment: "" }, value);
  watch.ended("");
  if (LATER.has(answer.status)) throw new Cut(`The host answered ${answer.status}`);
  if (value === undefined) throw new Fault(`The host answered ${answer.status}, and no JSON`, { status: answer.status });
  return opened(value, !answer.ok, answer.status);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The content of the envelope, if there is one. */
function opened(value, refused, status = 0) {
  const error = value?.error ?? (refused ? value : null);
  if (error) throw new Fault(error.message ?? `The host answered ${status}`, { status, error });
  return value && value.jsonrpc ? value.result : value;
}
