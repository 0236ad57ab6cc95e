// The wire: each request, the head of its answer, and a line for each run of like frames, which opens to their JSON.

import { folded, make, pretty, soon } from "./dom.js";
import { formatOf, read } from "./reading.js";

/** Exchanges, lines of one exchange, frames and characters of an open line; characters of frames that are kept in all. */
const [MOST, MOST_LINES, MOST_OPEN, LONGEST, MOST_KEPT] = [100, 300, 100, 100_000, 4_000_000];

/** The list, and a watcher for each exchange. `copies` are [label, function of the exchange, condition] for the buttons of a request. */
export class Frames {
  #total = 0;
  #size = 0;
  #order = []; // of the lines, one for each kept frame
  #changed = new Set();

  constructor(list, total, copies) {
    Object.assign(this, { list, total, copies });
  }

  /** Return a watcher of one exchange. */
  watch() {
    let [block, last, format] = [null, null, {}];
    const add = (kind, title, one) => {
      if (!one || last?.kind !== kind || last.title !== title) {
        last = { kind, title, first: one?.id, count: 0, kept: [], ...line(kind, one) };
        block.append(last.node);
        if (block.children.length > MOST_LINES) block.children[1].remove(); // the request stays
      }
      last.count += 1;
      last.last = one?.id;
      if (one) this.#keep(last, one.data ?? "");
      this.#change(last);
    };
    return {
      sent: (sent) => {
        format = formatOf(sent.dialect, sent.binding === "HTTP+JSON");
        block = make("li", { class: "pg-exchange" }, this.#request(sent));
        this.list.append(block);
        while (this.list.children.length > MOST) this.list.firstElementChild.remove();
      },
      answered: (status, headers) => add("pg-in", `${status} ${headers.get("Content-Type") ?? ""}`),
      got: (one, value) => add("pg-in", label(one, value, format), one),
      ended: (why) => { if (why) add("pg-cut", why); },
    };
  }

  clear() {
    this.list.replaceChildren();
    [this.#order, this.#size, this.#total] = [[], 0, 0];
    this.total.textContent = "";
  }

  #keep(one, text) {
    one.kept.push(text);
    this.#order.push(one);
    this.#size += text.length;
    while (this.#size > MOST_KEPT && this.#order.length > 1) this.#size -= this.#order.shift().kept.shift().length;
  }

  #change(one) {
    this.#total += 1;
    if (!this.#changed.size) soon(() => this.#draw());
    this.#changed.add(one);
  }

  #draw() {
    this.total.textContent = `(${this.#total})`;
    for (const one of this.#changed) one.draw(one);
    this.#changed.clear();
  }

  #request(sent) {
    const lines = Object.entries(sent.headers).map(([name, value]) => `${name}: ${name === sent.secretHeader ? "••••" : value}`);
    const offered = this.copies.filter(([, , can]) => !can || can(sent));
    const buttons = offered.map(([text, copy]) => make("button", { type: "button", class: "pg-small", "aria-label": text, click: () => copy(sent) }, text.replace("Copy as ", "").replace(" versions", "")));
    return make("div", { class: "pg-frame pg-out" },
      make("p", { class: "pg-line" }, make("strong", {}, `${sent.method} ${new URL(sent.url).pathname}`), " ", make("span", { class: "quiet" }, sent.operation)),
      make("p", { class: "pg-line" }, ...buttons),
      folded("Headers", lines.join("\n")), sent.text ? folded("Request", pretty(sent.text)) : null);
  }
}

/** A line that shows its frames, if it has some, while it is open. */
function line(kind, one) {
  const [summary, body] = [make(one ? "summary" : "div", { class: "pg-line" }), make("div")];
  const node = make(one ? "details" : "div", { class: `pg-frame ${kind}` }, summary, body);
  const draw = ({ title, first, last, count, kept }) => {
    const which = first === undefined || first === null ? "" : `event ${first}${count > 1 ? `–${last}` : ""}`;
    summary.textContent = [which, title].filter(Boolean).join(" · ") + (count > 1 ? ` ×${count}` : "");
    if (!node.open) return body.replaceChildren();
    const shown = kept.slice(-MOST_OPEN);
    const omitted = count > shown.length && kept.length ? make("p", { class: "quiet" }, `The last ${shown.length} of ${count}:`) : null;
    body.replaceChildren(...[omitted, shown.length ? make("pre", { tabindex: 0, "aria-label": "Frames" }, shown.map((text) => (text.length < LONGEST ? pretty(text) : text)).join("\n\n").slice(0, LONGEST)) : null].filter(Boolean));
  };
  return { node, draw: (now) => { node.ontoggle = () => draw(now); draw(now); } };
}

function label({ id, event, comment, data }, value, format) {
  if (data === null) return `comment: ${comment}`;
  const found = read(value?.result ?? value, format);
  const what = found ? [found.kind, found.state || contentOf(found)].filter(Boolean).join(" ") : id === null ? "answer" : "";
  return event && event !== "message" ? [event, what].filter(Boolean).join(", ") : what;
}

const contentOf = ({ artifact, words }) => Object.keys((artifact?.parts ?? words ?? [])[0] ?? {})[0] ?? "";
