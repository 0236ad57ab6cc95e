// The conversation on the page. Of what agents say, only Markdown (markdown.js) becomes markup; the rest is text.

import { folded, make } from "./dom.js";
import { Prose } from "./markdown.js";
import { callOf } from "./reading.js";

const WORDS = {
  submitted: "is accepted", working: "works", "input-required": "asks for an answer", "auth-required": "needs a credential",
  completed: "has finished", failed: "has failed", canceled: "was canceled", rejected: "declined",
};
/** The beginning of what a host in development (DEBUG) adds to a failure. */
const TRACE = "Traceback (most recent call last)";
const MOST_STEPS = 500;
const LONGEST = 100_000; // characters of JSON that are shown
/** Text parts of a whole artifact from which they are pieces of one text. */
const PIECES = 4;
export const describe = (state) => WORDS[state] ?? state;

/** A message of the user; `again` edits it. */
export function mine({ text, data, files, words }, again) {
  return make("li", { class: "pg-turn pg-mine" },
    make("p", { class: "pg-who" }, "You", again ? make("button", { type: "button", class: "pg-small", title: "Edit and send again, in a new chat", click: again }, "Edit") : null),
    text ? make("p", { class: "pg-plain" }, text) : null,
    data === undefined ? null : part({ data }),
    ...(files ?? []).map(({ name, size }) => make("p", { class: "pg-file" }, `${name} (${size} bytes)`)),
    ...(words ?? []).map((one) => ("text" in one ? make("p", { class: "pg-plain" }, one.text) : part(one))));
}

/** The answer to one message, as far as it has come. */
export class Answer {
  #state = make("span", { class: "pg-state" });
  #took = make("span", { class: "quiet" });
  #steps = make("div", { class: "pg-steps" });
  #words = make("div");
  #artifacts = make("div");
  #usage = make("p", { class: "quiet" });
  #bodies = new Map();
  #tools = new Map();
  #calls;
  #said = "";
  #clock = 0;

  /** `before`: the answer before, whose calls may have their results here. */
  constructor(who, before) {
    this.#calls = before?.calls ?? new Map();
    this.node = make("li", { class: "pg-turn pg-theirs" },
      make("p", { class: "pg-who" }, who, " ", this.#state, " ", this.#took), this.#steps, this.#artifacts, this.#words, this.#usage);
  }

  /** Show an event of reading.js. */
  take(event) {
    if (event.state) this.#status(event.state);
    if (event.usage) this.#usage.textContent = event.usage;
    if (event.kind === "again") this.#clear();
    else if (event.kind === "task") this.#whole(event);
    else if (event.kind === "artifact") this.#artifact(event);
    else this.#say(event);
  }

  get state() {
    return this.#state.textContent;
  }

  get calls() {
    return this.#calls;
  }

  /** Say that the answer is under way, and for how long. */
  busy(yes) {
    clearInterval(this.#clock);
    if (!yes) return this.node.removeAttribute("aria-busy");
    const since = Date.now();
    this.node.setAttribute("aria-busy", "true");
    this.#clock = setInterval(() => { this.#took.textContent = `${Math.round((Date.now() - since) / 1000)} s`; }, 1000);
  }

  /** The text of the agent, without names of artifacts and files. */
  get text() {
    return Array.from(this.node.querySelectorAll(".pg-text"), (one) => TEXTS.get(one).text).join(" ").trim();
  }

  #status(state) {
    this.#state.textContent = state;
    this.#state.className = `pg-state pg-${state}`;
  }

  /** What is said of work stays as a line; other states have one text. */
  #say({ state, words }) {
    const call = callOf(words);
    if (call) return this.#tool(call);
    if (!words.length) return undefined;
    if (state !== "working") return this.#words.replaceChildren(...parts(words));
    const said = JSON.stringify(words);
    if (said !== this.#said) this.#step(make("div", { class: "pg-step" }, ...words.map((one) => ("text" in one ? one.text : part(one)))));
    this.#said = said;
    return undefined;
  }

  #step(node) {
    this.#steps.append(node);
    if (this.#steps.children.length > MOST_STEPS) this.#steps.firstElementChild.remove();
  }

  #tool({ id, name, args, content, error }) {
    if (name !== undefined) this.#calls.set(id, { name, args });
    if (!this.#tools.has(id)) {
      this.#tools.set(id, new Tool(this.#calls.get(id) ?? { name: id }));
      this.#step(this.#tools.get(id).node);
    }
    if (name === undefined) this.#tools.get(id).answered(content, error);
  }

  #clear() {
    this.#bodies.clear();
    this.#tools.clear();
    this.#said = "";
    for (const one of [this.#steps, this.#words, this.#artifacts]) one.replaceChildren();
  }

  #whole({ state, words, artifacts }) {
    this.#bodies.clear();
    this.#artifacts.replaceChildren();
    for (const artifact of artifacts) this.#artifact({ artifact: { ...artifact, parts: joined(artifact.parts) }, append: false });
    this.#say({ state, words });
  }

  #artifact({ artifact, append }) {
    let body = this.#bodies.get(artifact.id);
    if (!body) {
      body = make("div", { class: "pg-parts" });
      const title = artifact.name || `Artifact ${artifact.id}`;
      this.#artifacts.append(make("figure", { class: "pg-artifact" }, make("figcaption", {}, title), body));
      this.#bodies.set(artifact.id, body);
    } else if (append) {
      return extend(body, artifact.parts);
    }
    return body.replaceChildren(...parts(artifact.parts));
  }
}

/** A call of a tool: a line that opens to its arguments and its result. */
class Tool {
  #title = make("summary");
  #since = performance.now();

  constructor({ name, args }) {
    this.called = `${name}(${brief(args)})`;
    this.#title.textContent = `${this.called} …`;
    this.node = make("details", { class: "pg-step pg-tool" }, this.#title, json(args ?? {}, "Arguments"));
  }

  answered(content, error) {
    const seconds = (performance.now() - this.#since) / 1000;
    this.#title.textContent = `${this.called} ${error ? "failed" : "✓"}${seconds > 0.1 ? ` ${seconds.toFixed(1)} s` : ""}`;
    this.node.classList.toggle("pg-bad", Boolean(error));
    this.node.append(json(content, "Result"));
  }
}

/** Arguments in a line: `to=Bob, count=2`. */
export function brief(args) {
  const said = Object.entries(args ?? {}).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");
  return said.length > 120 ? `${said.slice(0, 120)}…` : said;
}

/** The pieces of a streamed text that is read as a whole. */
function joined(list) {
  const pieces = list.length >= PIECES && list.every((one) => "text" in one);
  return pieces ? [{ text: list.map((one) => one.text).join("") }] : list;
}

/** Append a piece; text continues the last text. */
function extend(body, more) {
  const [first, ...rest] = more;
  const last = TEXTS.get(body.lastElementChild);
  if (first && "text" in first && last) last.write(first.text);
  body.append(...parts(last ? rest : more));
}

const TEXTS = new WeakMap(); // Prose by its node
const parts = (list) => list.map(part);
const json = (value, title) => make("pre", { class: "pg-data", tabindex: 0, "aria-label": title }, (JSON.stringify(value, null, 2) ?? "").slice(0, LONGEST));

function part(value) {
  if ("text" in value && value.text.startsWith(TRACE)) return make("pre", { class: "pg-trace", tabindex: 0, "aria-label": "Traceback" }, value.text);
  if ("text" in value) {
    const prose = new Prose(value.text);
    TEXTS.set(prose.node, prose);
    return prose.node;
  }
  if ("file" in value) return file(value.file);
  if ("form" in value) return folded("Form (JSON Schema)", JSON.stringify(value.form, null, 2));
  return Array.isArray(value.data?.calls) ? folded("Calls (JSON)", JSON.stringify(value.data, null, 2)) : json(value.data, "Data");
}

function file({ name, type, bytes, url }) {
  const title = name || "a file";
  const about = type ? ` (${type})` : "";
  if (typeof bytes === "string") return make("div", { class: "pg-file" }, preview(title, type, bytes), make("p", {}, saved(title, bytes), about));
  const picture = safe(url) && OWN_FILE.test(url) && PICTURE.test(type) ? make("img", { src: url, alt: title }) : null;
  return make("div", { class: "pg-file" }, picture, make("p", {}, safe(url) ? elsewhere(url, title) : `${title}: ${url}`, about));
}

const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
/** A file that this host stores. Other addresses are asked for nothing unless the user opens them. */
const OWN_FILE = new RegExp(`^${location.origin}/[\\w./~-]*agents/[\\w.-]+/files/[0-9a-f]{32}(\\?|$)`);

/** A picture, a sound or a document. Its URL has the type that is checked here, and no origin, so nothing in it runs or reads. */
function preview(name, type, bytes) {
  const src = `data:${type};base64,${bytes}`;
  if (PICTURE.test(type) || type === "image/svg+xml") return make("img", { src, alt: name });
  if (/^audio\/[\w.+-]+$/.test(type)) return make("audio", { src, controls: true, "aria-label": name });
  if (/^video\/(mp4|webm|ogg)$/.test(type)) return make("video", { src, controls: true, "aria-label": name });
  if (type !== "application/pdf") return null;
  const frame = make("iframe", { title: name });
  return make("details", { toggle: () => frame.setAttribute("src", src) }, make("summary", {}, `Preview of ${name}`), frame);
}

/** A link that saves the file. Opened, it could be a page of this host. */
function saved(name, bytes) {
  try {
    const octets = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    const href = URL.createObjectURL(new Blob([octets], { type: "application/octet-stream" }));
    return make("a", { href, download: name }, name);
  } catch {
    return `${name}: no base64`;
  }
}

const elsewhere = (href, text) => make("a", { href, rel: "noopener noreferrer nofollow", target: "_blank" }, text);

function safe(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}
