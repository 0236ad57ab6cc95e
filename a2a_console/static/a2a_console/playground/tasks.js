// Tasks to open again: those of this browser, by their ids alone, and those that the protocol lists.

import { make } from "./dom.js";

const KEPT = "a2a-playground-tasks";
const MOST = 50;

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}

export function remember(id, { agent }) {
  const others = remembered().filter((one) => one.id !== id);
  try {
    localStorage.setItem(KEPT, JSON.stringify([{ id, agent, at: new Date().toISOString() }, ...others].slice(0, MOST)));
  } catch {
    // A browser that keeps nothing: then nothing is remembered.
  }
}

export class Tasks {
  /** `look(id)` shows a task; `list()` asks the protocol for them; `can()`: true if the dialect has that. */
  constructor(node, { look, list, can }) {
    Object.assign(this, { node, look, list, can });
  }

  /** Offer what there is for an agent. */
  offer(card) {
    const own = remembered().filter((one) => one.agent === card?.slug);
    const listing = make("div");
    const button = make("button", { type: "button", click: () => this.#ask(listing) }, "ListTasks");
    this.node.replaceChildren(
      make("p", { class: "quiet" }, own.length ? "Begun in this browser:" : "None was begun in this browser."),
      this.#entries(own.map(({ id, at }) => [id, at])),
      this.can() ? button : make("p", { class: "quiet" }, "This dialect has no operation that lists tasks."),
      listing,
    );
  }

  async #ask(listing) {
    try {
      const found = await this.list();
      listing.replaceChildren(this.#entries(found.map(({ id, state, at }) => [id, `${state} ${at}`])));
    } catch (fault) {
      listing.replaceChildren(make("p", {}, `The host refused: ${fault.message}`));
    }
  }

  #entries(pairs) {
    return make("ul", { class: "pg-tasks" }, ...pairs.map(([id, about]) =>
      make("li", {}, make("button", { type: "button", class: "pg-small", click: () => this.look(id) }, id), " ", make("span", { class: "quiet" }, about))));
  }
}
