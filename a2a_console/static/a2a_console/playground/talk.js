// A conversation with one agent: turns, their streams, and recovery from lost connections.

import { has, request } from "./dialects.js";
import { unique } from "./dom.js";
import { ENDED, formatOf, read } from "./reading.js";
import { ask, Cut, listen } from "./wire.js";

const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 4000;
const POLL = 1000;
const WATCH = 2000;
/** A watcher of what is no part of the talk. */
export const UNSEEN = { sent() {}, answered() {}, got() {}, ended() {} };

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
 * `way`: {url, dialect, binding, streams, headers(), watch()}; calls of `show`: event(event), cut(times), joined().
 */
export class Talk {
  #stop = new AbortController();
  #at = ""; // of the last state,
  #until = ""; // and of the one up to which events are read again,
  #ended = ""; // and its state, if nothing follows it

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
    this.state = this.#until = this.#ended = "";
    await this.#follow(request(dialect, binding, streams ? "stream" : "send", input), null);
  }

  /**
   * Follow an existing task: show it as it is, and then, where the dialect has that, all its events from the first, which
   * say more: tools, progress, pieces. Throws Fault.
   */
  async attach(task) {
    this.#only();
    this.task = task;
    this.state = "";
    await this.#once("get");
    if (!this.replays) return this.#over() ? undefined : this.#follow(this.#next(null, null), null);
    this.#ended = ENDED.has(this.state) ? this.state : "";
    [this.#until, this.#at, this.state] = [this.#at, "", ""];
    this.show.event({ kind: "again" });
    return this.#follow(this.#next(null, "0"), "0");
  }

  /** Return a task as it is. Throws Fault. */
  async read(task, watch = this.way.watch()) {
    const { dialect, binding, url } = this.way;
    const answer = await ask(url, request(dialect, binding, "get", { task }), { ...this.#options(), watch });
    return read(answer, formatOf(dialect, binding === "HTTP+JSON"));
  }

  /** Return when a task that waits for an answer no longer does: somebody else gave it. Throws an AbortError. */
  async wait() {
    const { signal } = this.#stop;
    for (;;) {
      await paused(WATCH, signal);
      if (document.hidden) continue;
      const now = await this.read(this.task, UNSEEN).catch((fault) => { if (!(fault instanceof Cut)) throw fault; });
      if (now && (now.state !== this.state || now.at !== this.#at)) return;
    }
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
    let [next, last, pause, lost] = [first, beginning, FIRST_PAUSE, 0];
    for (;;) {
      try {
        const sends = next.operation === "stream" || next.operation === "send";
        const headers = { ...(sends ? { "Idempotency-Key": key } : {}), ...(last ? { "Last-Event-ID": last } : {}) };
        for await (const { id, result } of listen(this.way.url, next, this.#options(headers))) {
          [last, pause, lost] = [id ?? last, FIRST_PAUSE, 0];
          this.show.joined();
          this.#take(result);
          if (this.#over()) return; // a subscription stays open where the agent asks
        }
        this.#until = "";
        this.state = this.#ended || this.state;
      } catch (fault) {
        if (!(fault instanceof Cut)) throw fault;
      }
      if (this.#over()) return;
      const polls = next.operation === "get";
      if (!polls) this.show.cut(lost += 1);
      await paused(polls ? POLL : pause, this.#stop.signal);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
      next = this.#next(first, last);
    }
  }

  /** True if the events of a task can be read again. */
  get replays() {
    return this.way.streams && has(this.way.dialect, "subscribe");
  }

  /** The request after a lost connection, or the first one if `first` is null. */
  #next(first, last) {
    const { dialect, binding, streams } = this.way;
    const again = (operation) => request(dialect, binding, operation, { task: this.task });
    if (this.task && this.replays && (last || !first)) return again("subscribe");
    if (first && (streams || !this.task || this.state === "")) return first;
    return again("get");
  }

  #over() {
    const { dialect } = this.way;
    if (this.#at < this.#until) return false;
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
    this.#at = event.at ?? this.#at;
    this.show.event(event);
  }
}
