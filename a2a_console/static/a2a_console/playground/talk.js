// A conversation with one agent: turns, their streams, and recovery from lost connections.

import { has, request } from "./dialects.js";
import { unique } from "./dom.js";
import { ENDED, formatOf, read } from "./reading.js";
import { ask, Cut, listen } from "./wire.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 4000;
const POLL = 1000;

/** Until the time is over, the browser is online again, or the signal says to stop (then it throws). */
function paused(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = (settle, value) => { clearTimeout(timer); over.abort(); settle(value); };
    const timer = setTimeout(() => end(resolve), milliseconds);
    addEventListener("online", () => end(resolve), { signal: over.signal });
    signal.addEventListener("abort", () => end(reject, signal.reason), { signal: over.signal });
  });
}

/**
 * `way`: {url, dialect, binding, streams, headers(), watch()}; calls of `show`: event(event), cut(milliseconds), joined().
 */
export class Talk {
  #stop = new AbortController();

  constructor(way, show) {
    this.way = way;
    this.show = show;
    this.task = "";
    this.context = "";
    this.state = "";
  }

  /** True if the next message continues the task. */
  get goesOn() {
    return this.task !== "" && !ENDED.has(this.state);
  }

  /** Send a message, and follow the answer to the end of the turn. Throws Fault. */
  async send({ text, data, files, webhook }) {
    this.#only();
    const { dialect, binding, streams } = this.way;
    const naming = dialect.namesTask ? unique : () => undefined;
    if (!this.goesOn) this.task = naming() ?? "";
    this.context ||= naming() ?? "";
    const input = { id: unique(), text, data, files, webhook, task: this.task, context: this.context, wait: true };
    this.state = "";
    await this.#follow(request(dialect, binding, streams ? "stream" : "send", input), null);
  }

  /** Follow an existing task from its present state. Throws Fault. */
  async attach(task) {
    this.#only();
    this.task = task;
    this.state = "";
    await this.#once("get");
    if (this.#over()) return;
    // Streams of the older dialects do not begin with the task: they are read again from the first event.
    const beginning = this.way.dialect.namesTask ? "0" : null;
    if (beginning !== null && this.#subscribes()) this.show.event({ kind: "again" });
    await this.#follow(this.#next(null, beginning), beginning);
  }

  /** Register a webhook for the task, in the dialect that cannot do it with a message. Throws Fault. */
  async setWebhook(webhook) {
    await this.#once("webhook", { task: this.task, webhook });
  }

  /** Throws Fault. */
  async cancel() {
    await this.#once("cancel");
  }

  /** Stop following; the task goes on. */
  leave() {
    this.#stop.abort();
  }

  /** End the stream before: its events are in the next one, too. */
  #only() {
    this.#stop.abort();
    this.#stop = new AbortController();
  }

  async #once(operation, input = { task: this.task }) {
    const { dialect, binding, url } = this.way;
    const answer = await ask(url, request(dialect, binding, operation, input), this.#options());
    if (operation !== "webhook") this.#take(answer);
  }

  #options(headers = {}) {
    return { headers: { ...this.way.headers(), ...headers }, signal: this.#stop.signal, watch: this.way.watch() };
  }

  /** Read a stream to the end of the turn, over as many connections as necessary, without gaps and repetitions. */
  async #follow(first, beginning) {
    // The idempotency key makes a repeated message join the first one; its stream continues after the last event.
    const key = unique();
    let [next, last, pause] = [first, beginning, FIRST_PAUSE];
    for (;;) {
      try {
        const sends = next.operation === "stream" || next.operation === "send";
        const headers = { ...(sends ? { "Idempotency-Key": key } : {}), ...(last ? { "Last-Event-ID": last } : {}) };
        for await (const { id, result } of listen(this.way.url, next, this.#options(headers))) {
          [last, pause] = [id ?? last, FIRST_PAUSE];
          this.show.joined();
          this.#take(result);
          if (this.#over()) return; // a subscription stays open where the agent asks
        }
      } catch (fault) {
        if (!(fault instanceof Cut)) throw fault;
      }
      if (this.#over()) return;
      const polls = next.operation === "get";
      if (!polls) this.show.cut(pause);
      await paused(polls ? POLL : pause, this.#stop.signal);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
      next = this.#next(first, last);
    }
  }

  #subscribes() {
    return this.way.streams && has(this.way.dialect, "subscribe");
  }

  /** The request after a lost connection, or the first one if `first` is null. */
  #next(first, last) {
    const { dialect, binding, streams } = this.way;
    const again = (operation) => request(dialect, binding, operation, { task: this.task });
    if (this.task && this.#subscribes() && (last || !first)) return again("subscribe");
    if (first && (streams || !this.task || this.state === "")) return first;
    return again("get");
  }

  #over() {
    const { dialect } = this.way;
    return ENDED.has(this.state) || this.state === "input-required" || (dialect.waitsForAuth && this.state === "auth-required") || this.state === "answered";
  }

  #take(result) {
    const { dialect, binding } = this.way;
    const event = read(result, formatOf(dialect, binding === "HTTP+JSON"));
    if (event === null) return;
    if (event.kind === "message") this.state = "answered"; // an answer without a task
    else this.task = event.id || this.task;
    if (event.kind === "message" && !dialect.namesTask) this.task = "";
    this.context = event.context || this.context;
    this.state = event.state ?? this.state;
    this.show.event(event);
  }
}
