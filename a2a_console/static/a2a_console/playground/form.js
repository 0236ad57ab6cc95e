// The form of a question: a field for each property of its JSON Schema, of the same kinds as in the inbox (a2a_console/queue/form_fields.py).

import { folded, make, unique } from "./dom.js";
import { brief } from "./view.js";

const LONG = 200; // length of texts from which a field has several lines

const listOf = (value) => (Array.isArray(value) ? value : []);
const typeOf = (schema) => String((Array.isArray(schema.type) ? schema.type[0] : schema.type) ?? "");

/** Of a field: "choice", "yes-no", "checkbox", "number", "text", "long" or "json". A required boolean without a default has two buttons: no answer does not mean no. */
export function kindOf(schema, required) {
  const choices = listOf(schema.enum);
  if (choices.length) return choices.every((one) => typeof one === "string") ? "choice" : "json";
  const type = typeOf(schema);
  if (type === "boolean") return required && !("default" in schema) ? "yes-no" : "checkbox";
  if (type !== "string") return ["integer", "number"].includes(type) ? "number" : "json";
  return schema.format === "textarea" || (schema.maxLength ?? 0) > LONG ? "long" : "text";
}

const standard = (schema) => {
  const value = schema.default ?? "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

const choice = (options, chosen, about) =>
  make("select", about, ...["", ...options].map((one) => make("option", { value: one, selected: one === chosen }, one)));

const INPUTS = {
  choice: (schema, about) => choice(schema.enum, standard(schema), about),
  "yes-no": (schema, { id, required, ...about }, title) => make("fieldset", { id, role: "radiogroup", ...about }, make("legend", {}, ...title),
    ...["yes", "no"].map((value) => make("label", { class: "pg-check" }, make("input", { type: "radio", name: id, value, required }), value))),
  checkbox: (schema, about) => make("input", { ...about, type: "checkbox", checked: schema.default === true }),
  number: (schema, about) => make("input", { ...about, type: "number", value: standard(schema) }),
  text: (schema, about) => make("input", { ...about, type: "text", value: standard(schema) }),
  long: (schema, about) => make("textarea", { ...about, rows: 3 }, standard(schema)),
  json: (schema, about) => make("textarea", { ...about, rows: 3, spellcheck: "false" }, standard(schema)),
};

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the host refuses it and names the type
  }
}

/** What the browser checks of it. */
const limits = (schema, kind) => kind === "number"
  ? { min: schema.minimum, max: schema.maximum, step: typeOf(schema) === "integer" ? 1 : "any" }
  : { minlength: schema.minLength, maxlength: kind === "text" ? schema.maxLength : null };

const READ = {
  "yes-no": (group) => group.querySelector(":checked").value === "yes",
  checkbox: ({ checked }) => checked,
  number: ({ value }) => parsed(value),
  json: ({ value }) => parsed(value),
};

/** The fields in `node`, a fieldset that is hidden while there is no form. */
export class Form {
  #fields = [];
  #shown = "null";

  constructor(node) {
    this.node = node;
  }

  /** Show the fields of a form, and a card for each of the `calls` whose approval it asks for; null: there is none. */
  show(schema, calls = []) {
    const asked = JSON.stringify(schema);
    if (asked === this.#shown) return; // what was entered stays
    this.#shown = asked;
    const required = listOf(schema?.required);
    this.#fields = Object.entries(schema?.properties ?? {}).map(([name, one]) => {
      const call = calls.find(({ id }) => id === name);
      return call && listOf(one.type).includes("boolean") ? approval(name, call, () => this.#decided()) : field(name, one, required.includes(name));
    });
    this.node.replaceChildren(...(schema ? [make("legend", {}, String(schema.title ?? "The agent asks"))] : []), ...this.#fields.map(({ row }) => row));
    this.node.hidden = !this.#fields.length;
  }

  /** The last decision sends the answer, if there is nothing else to say. */
  #decided() {
    if (this.#fields.every((one) => one.decided?.() !== undefined)) this.node.form.requestSubmit();
  }

  /** The answer; undefined if there is no form, or if nothing was entered and `others` (a text or files) are sent. */
  answer(others) {
    const filled = this.#fields.filter((one) => one.filled());
    const touched = filled.some(({ kind, input }) => kind !== "checkbox" || input.checked);
    if (!this.#fields.length || (others && !touched)) return undefined;
    return Object.fromEntries(filled.map((one) => [one.name, one.value()]));
  }

  /** Show what is wrong with the fields, beside them. Returns whether something is. */
  check() {
    return this.refuse(this.#fields.map((one) => [one.name, one.wrong()]).filter(([, text]) => text));
  }

  /** Show what is said of fields: pairs [path, text]. Focus the first. Returns whether there is one. */
  refuse(faults) {
    for (const { name, input, fault } of this.#fields) {
      const own = faults.filter(([path]) => concerns(path, name)).map(([, text]) => text);
      fault.textContent = own.join("; ");
      if (own.length) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    const first = this.#fields.find(({ input }) => input.hasAttribute("aria-invalid"));
    if (first) focused(first.input).focus();
    return first !== undefined;
  }
}

/** The element with the focus: of two buttons the first. */
const focused = (input) => input.querySelector("input") ?? input;

/** A path such as `message.parts[0].data.people`. */
function concerns(path, name) {
  const inside = path.replace(/^message\.parts\[\d+\]\.data\./, "");
  return inside === name || inside.startsWith(`${name}.`);
}

function field(name, schema, required) {
  const [id, kind] = [`pg-field-${unique()}`, kindOf(schema, required)];
  const about = { id, "aria-describedby": `${id}-help ${id}-fault`, required: required && kind !== "checkbox" };
  const title = [String(schema.title ?? name), ...(required ? [make("span", { class: "quiet" }, " (required)")] : [])];
  const input = INPUTS[kind](schema, { ...about, ...limits(schema, kind) }, title);
  const help = [schema.description, kind === "json" ? "(JSON)" : ""].filter(Boolean).join(" ");
  const fault = make("span", { id: `${id}-fault`, class: "pg-fault" });
  const labels = {
    checkbox: () => make("label", { class: "pg-check" }, input, make("span", {}, ...title)),
    "yes-no": () => input, // its legend has the title
  };
  const label = (labels[kind] ?? (() => make("label", { for: id }, ...title)))();
  const row = make("div", { class: "pg-field" }, label, kind in labels ? null : input,
    make("span", { id: `${id}-help`, class: "quiet" }, help), fault);
  return {
    name, kind, input, fault, row,
    filled: () => kind === "checkbox" || Boolean(kind === "yes-no" ? input.querySelector(":checked") : input.value.trim()) || input.validity.badInput,
    value: () => (kind in READ ? READ[kind](input) : input.value),
    wrong: () => focused(input).validationMessage,
  };
}

/** The card of a call: Approve, or Deny with a reason. */
function approval(name, { tool, arguments: args }, then) {
  let decision;
  const title = `${tool}(${brief(args)})`;
  const id = `pg-field-${unique()}`;
  const why = make("input", { id, type: "text" });
  const button = (text, decide, kind = null) => make("button", { type: "button", class: kind, "aria-pressed": "false", click: decide }, text);
  const decide = (one, value) => {
    decision = value;
    for (const each of [yes, no]) each.setAttribute("aria-pressed", String(each === one));
    then();
  };
  const yes = button("Approve", () => { reason.hidden = true; decide(yes, true); }, "pg-main");
  const deny = () => decide(no, why.value.trim() ? { approved: false, message: why.value.trim() } : false);
  const no = button("Deny…", () => { reason.hidden = false; why.focus(); });
  const reason = make("div", { class: "pg-bar", hidden: true }, make("label", { for: id }, "Reason, if any"), why, make("button", { type: "button", click: deny }, "Deny"));
  why.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); deny(); } });
  const fault = make("span", { class: "pg-fault" });
  const row = make("div", { class: "pg-field pg-approval", role: "group", "aria-label": title },
    make("code", {}, title), folded("Arguments", JSON.stringify(args, null, 2) ?? ""), make("div", { class: "pg-bar" }, yes, no), reason, fault);
  return {
    name, kind: "approval", input: yes, fault, row, decided: () => decision,
    filled: () => decision !== undefined, value: () => decision, wrong: () => (decision === undefined ? "Approve or deny this call." : ""),
  };
}
