// A conversation with one agent: turns, their streams, and what is done when a connection is lost.

import { has, request } from "./dialects.js";
import { unique } from "./dom.js";
import { ENDED, manner, read } from "./reading.js";
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
 * `way`: {url, spoken, binding, streams, headers(), watch()}; `show` is told by event(event), cut(milliseconds), joined().
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

  /** Does the next message go on with the task, or begin another? */
  get goesOn() {
    return this.task !== "" && !ENDED.has(this.state);
  }

  /** Say something, and follow the answer to the end of the turn. Throws Fault. */
  async say({ text, files, webhook }) {
    this.#only();
    const { spoken, binding, streams } = this.way;
    const naming = spoken.namesTask ? unique : () => undefined;
    if (!this.goesOn) this.task = naming() ?? "";
    this.context ||= naming() ?? "";
    const said = { id: unique(), text, files, webhook, task: this.task, context: this.context, wait: true };
    this.state = "";
    await this.#follow(request(spoken, binding, streams ? "stream" : "send", said), null);
  }

  /** Follow a task that is there: what it is, and what becomes of it. Throws Fault. */
  async attach(task) {
    this.#only();
    this.task = task;
    this.state = "";
    await this.#once("get");
    if (this.#over()) return;
    // Streams of the older dialects do not begin with the task: they are read again from the first event.
    const beginning = this.way.spoken.namesTask ? "0" : null;
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

  /** One stream at a time: what is followed until now is told by the next one, too. */
  #only() {
    this.#stop.abort();
    this.#stop = new AbortController();
  }

  async #once(operation, said = { task: this.task }) {
    const { spoken, binding, url } = this.way;
    const answer = await ask(url, request(spoken, binding, operation, said), this.#options());
    if (operation !== "webhook") this.#take(answer);
  }

  #options(headers = {}) {
    return { headers: { ...this.way.headers(), ...headers }, signal: this.#stop.signal, watch: this.way.watch() };
  }

  /** Read a stream to the end of the turn, over as many connections as that takes: without a gap, and nothing twice. */
  async #follow(first, beginning) {
    // Under its key a message can be sent again: it is the same message, and its stream goes on after the last event.
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
    return this.way.streams && has(this.way.spoken, "subscribe");
  }

  /** What to ask for after a connection was lost, or at first where `first` is null. */
  #next(first, last) {
    const { spoken, binding, streams } = this.way;
    const again = (operation) => request(spoken, binding, operation, { task: this.task });
    if (this.task && this.#subscribes() && (last || !first)) return again("subscribe");
    if (first && (streams || !this.task || this.state === "")) return first;
    return again("get");
  }

  #over() {
    const { spoken } = this.way;
    return ENDED.has(this.state) || this.state === "input-required" || (spoken.waitsForAuth && this.state === "auth-required") || this.state === "said";
  }

  #take(result) {
    const { spoken, binding } = this.way;
    const event = read(result, manner(spoken, binding === "HTTP+JSON"));
    if (event === null) return;
    if (event.kind === "message") this.state = "said"; // an answer that is no task
    else this.task = event.id || this.task;
    if (event.kind === "message" && !spoken.namesTask) this.task = "";
    this.context = event.context || this.context;
    this.state = event.state ?? this.state;
    this.show.event(event);
  }
}
