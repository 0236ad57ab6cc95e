// The side list: chats of this browser, and the tasks that the host lists for the caller, which are the truth where it does.

import { make } from "./dom.js";

const KEPT = `a2a-playground-chats ${location.pathname}`;
const MOST = 50;

/** What all tabs of this browser remember; null: it keeps nothing. */
function recalled() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]");
  } catch {
    return null;
  }
}

/** A chat is {agent, context, title, tasks, state, at}; its tasks follow each other in one context. */
export class Chats {
  #own = recalled() ?? [];
  #listed = []; // by the host, and not begun here
  #gone = new Set(); // first tasks of those of this browser that the host does not list

  constructor(node, open) {
    Object.assign(this, { node, open, current: "" });
  }

  /** True if nothing was said yet. */
  get none() {
    return !this.#all.length;
  }

  get #all() {
    return [...this.#own, ...this.#listed];
  }

  find(task) {
    return this.#all.find((one) => one.tasks.includes(task));
  }

  /** Show what another tab has noted. */
  reload() {
    this.#own = recalled() ?? this.#own;
    this.draw(this.current);
  }

  /** Remember a task, and its state. */
  note({ task, context, ...about }) {
    this.#own = recalled() ?? this.#own;
    const known = this.#own.find((one) => one.tasks.includes(task) || (context && one.context === context)) ?? { tasks: [], ...this.find(task), ...about, context };
    if (!known.tasks.includes(task)) known.tasks = [...known.tasks, task].slice(-MOST);
    if (about.state) known.state = about.state;
    known.at = new Date().toISOString();
    this.#gone.delete(known.tasks[0]);
    this.#own = [known, ...this.#own.filter((one) => one !== known)].slice(0, MOST);
    this.#listed = this.#listed.filter((one) => !one.tasks.includes(task));
    try {
      localStorage.setItem(KEPT, JSON.stringify(this.#own));
    } catch {
      // Then it is forgotten with this page.
    }
    this.draw(task);
  }

  /** Take over what the host lists for an agent; `all`: there is no more. */
  list(agent, tasks, all) {
    this.#listed = [];
    for (const { id, context, state, at, history } of tasks) {
      const said = history.find((one) => one.mine)?.words.find((one) => "text" in one)?.text ?? id;
      const known = this.find(id) ?? this.#listed.find((one) => context && one.context === context);
      if (!known) this.#listed.push({ agent, context, title: said.slice(0, 80), tasks: [id], state, at });
      else if (!known.tasks.includes(id)) known.tasks.unshift(id);
      else if (known.tasks.at(-1) === id) known.state = state;
    }
    const ids = new Set(tasks.map(({ id }) => id));
    this.#gone = new Set(this.#own.filter((one) => all && one.agent === agent && !one.tasks.some((id) => ids.has(id))).map((one) => one.tasks[0]));
    this.draw(this.current);
  }

  draw(current) {
    this.current = current;
    const shown = this.#all.filter((one) => !this.#gone.has(one.tasks[0])).sort((a, b) => (a.at < b.at ? 1 : -1)).slice(0, MOST);
    this.node.replaceChildren(...shown.map((one) => make("li", {}, make("button", {
      type: "button", title: one.title, "aria-current": one.tasks.includes(current) ? "true" : null, click: () => this.open(one),
    }, make("span", {}, one.title || one.tasks[0]), make("span", { class: "quiet" }, `${one.agent} · ${one.state ?? "sent"}`)))));
  }
}
