// The traffic, unmodified: each request, the head of its answer, and every frame.

import { make, pretty } from "./dom.js";

const MOST = 100;
const MOST_FRAMES = 300;
/** Pixels from the end at which the list follows what comes. */
const NEAR = 80;

/** The list, and a watcher for each exchange. `copies` are [label, function of the exchange, condition] for the buttons of a request. */
export class Frames {
  constructor(list, copies) {
    this.list = list;
    this.copies = copies;
  }

  /** Return a watcher of one exchange. */
  watch() {
    let block = null;
    const add = (...nodes) => {
      const { scrollHeight, scrollTop, clientHeight } = this.list;
      block.append(...nodes);
      while (block.children.length > MOST_FRAMES) block.children[1].remove(); // the request stays
      if (scrollHeight - scrollTop - clientHeight < NEAR) this.list.scrollTop = this.list.scrollHeight; // does not scroll while the user reads older frames
    };
    return {
      sent: (sent) => {
        block = make("li", { class: "pg-exchange" });
        this.list.append(block);
        add(this.#request(sent));
        while (this.list.children.length > MOST) this.list.firstElementChild.remove();
      },
      answered: (status, headers) => add(frame("pg-in", `${status} ${headers.get("Content-Type") ?? ""}`)),
      got: (one) => add(frame("pg-in", label(one), one.data)),
      ended: (why) => { if (why) add(frame("pg-cut", why)); },
    };
  }

  clear() {
    this.list.replaceChildren();
  }

  #request(sent) {
    const lines = Object.entries(sent.headers).map(([name, value]) => `${name}: ${name === sent.secretHeader ? "••••" : value}`);
    const offered = this.copies.filter(([, , can]) => !can || can(sent));
    const buttons = offered.map(([text, copy]) => make("button", { type: "button", class: "pg-small", click: () => copy(sent) }, text));
    const path = new URL(sent.url).pathname;
    return make("div", { class: "pg-frame pg-out" },
      make("p", { class: "pg-line" }, make("strong", {}, `${sent.method} ${path}`), " ", ...buttons),
      make("details", {}, make("summary", {}, "Headers"), make("pre", { tabindex: 0, "aria-label": "Headers" }, lines.join("\n"))),
      sent.text ? body(sent.text, "Request") : null);
  }
}

const label = ({ id, event, comment, data }) => {
  if (data === null) return `comment: ${comment}`;
  return [id === null ? "answer" : `event ${id}`, event && event !== "message" ? event : ""].filter(Boolean).join(", ");
};

const frame = (kind, title, data = null) =>
  make("div", { class: `pg-frame ${kind}` }, make("p", { class: "pg-line" }, title), data === null ? null : body(data, title));

const body = (text, title) => make("pre", { tabindex: 0, "aria-label": title }, pretty(text));
