// The conversation on the page. Output of agents is shown as text, never as markup.

import { make } from "./dom.js";

const WORDS = {
  submitted: "is accepted", working: "works", "input-required": "asks for an answer", "auth-required": "needs a credential",
  completed: "has finished", failed: "has failed", canceled: "was cancelled", rejected: "declined",
};
/** The beginning of what a host in development (DEBUG) adds to a failure. */
const TRACE = "Traceback (most recent call last)";
export const describe = (state) => WORDS[state] ?? state;

/** A message of the user. */
export function mine({ text, data, files }) {
  return make("li", { class: "pg-turn pg-mine" },
    make("p", { class: "pg-who" }, "You"),
    text ? make("p", { class: "pg-text" }, text) : null,
    data === undefined ? null : part({ data }),
    ...files.map(({ name, size }) => make("p", { class: "pg-file" }, `${name} (${size} bytes)`)));
}

/** The answer to one message, as far as it has come. */
export class Answer {
  #state = make("span", { class: "pg-state" });
  #words = make("div");
  #artifacts = make("div");
  #bodies = new Map();

  constructor(who) {
    this.node = make("li", { class: "pg-turn pg-theirs" },
      make("p", { class: "pg-who" }, who, " ", this.#state), this.#words, this.#artifacts);
  }

  /** Show an event of reading.js. */
  take(event) {
    if (event.state) this.#status(event.state);
    if (event.kind === "again") this.#clear();
    else if (event.kind === "task") this.#whole(event);
    else if (event.kind === "artifact") this.#artifact(event);
    else if (event.words.length) this.#words.replaceChildren(...parts(event.words));
  }

  /** The text of the agent, without names of artifacts and files. */
  get text() {
    return Array.from(this.node.querySelectorAll(".pg-text"), (one) => one.textContent).join(" ").trim();
  }

  #status(state) {
    this.#state.textContent = state;
    this.#state.className = `pg-state pg-${state}`;
  }

  #clear() {
    this.#bodies.clear();
    this.#artifacts.replaceChildren();
  }

  #whole({ words, artifacts }) {
    this.#words.replaceChildren(...parts(words));
    this.#clear();
    for (const artifact of artifacts) this.#artifact({ artifact, append: false });
  }

  #artifact({ artifact, append }) {
    const existing = this.#bodies.get(artifact.id);
    if (!existing) {
      const body = make("div", { class: "pg-parts" }, ...parts(artifact.parts));
      const title = artifact.name || `Artifact ${artifact.id}`;
      this.#artifacts.append(make("figure", { class: "pg-artifact" }, make("figcaption", {}, title), body));
      this.#bodies.set(artifact.id, body);
    } else if (append) {
      extend(existing, artifact.parts);
    } else {
      existing.replaceChildren(...parts(artifact.parts));
    }
  }
}

/** A message from the history of a task that is opened again. */
export const past = ({ mine: own, words }, who) =>
  make("li", { class: `pg-turn ${own ? "pg-mine" : "pg-theirs"}` }, make("p", { class: "pg-who" }, own ? "You" : who), ...parts(words));

/** Append a piece; text continues the last paragraph. */
function extend(body, more) {
  const [first, ...rest] = more;
  const last = body.lastElementChild;
  if (first && "text" in first && last?.classList.contains("pg-text")) {
    last.append(first.text);
    body.append(...parts(rest));
  } else {
    body.append(...parts(more));
  }
}

const parts = (list) => list.map(part);

function part(value) {
  if ("text" in value && value.text.startsWith(TRACE)) return make("pre", { class: "pg-trace", tabindex: 0, "aria-label": "Traceback" }, value.text);
  if ("text" in value) return make("p", { class: "pg-text" }, value.text);
  if ("file" in value) return file(value.file);
  if ("form" in value) {
    const schema = make("pre", { class: "pg-data", tabindex: 0, "aria-label": "The form" }, JSON.stringify(value.form, null, 2));
    return make("details", {}, make("summary", { class: "quiet" }, "Form (JSON Schema)"), schema);
  }
  return make("pre", { class: "pg-data", tabindex: 0, "aria-label": "Data" }, JSON.stringify(value.data, null, 2) ?? "");
}

function file({ name, type, bytes, url }) {
  const title = name || "a file";
  const about = type ? ` (${type})` : "";
  if (typeof bytes === "string") return make("p", { class: "pg-file" }, saved(title, bytes), about);
  return make("p", { class: "pg-file" }, safe(url) ? elsewhere(url, title) : `${title}: ${url}`, about);
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
