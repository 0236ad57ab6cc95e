// The form of a question: a field for each property of its JSON Schema, of the same kinds as in the inbox (a2a_console/queue/form_fields.py).

import { make, unique } from "./dom.js";

const LONG = 200; // length of texts from which a field has several lines

const listOf = (value) => (Array.isArray(value) ? value : []);
const typeOf = (schema) => String((Array.isArray(schema.type) ? schema.type[0] : schema.type) ?? "");

/** "choice", "yes-no", "checkbox", "number", "text", "long" or "json". A required boolean without a default is a choice: no answer does not mean no. */
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
  "yes-no": (schema, about) => choice(["yes", "no"], "", about),
  checkbox: (schema, about) => make("input", { ...about, type: "checkbox", checked: schema.default === true }),
  number: (schema, about) => make("input", { ...about, type: "number", step: "any", value: standard(schema) }),
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

const READ = {
  "yes-no": ({ value }) => value === "yes",
  checkbox: ({ checked }) => checked,
  number: ({ value }) => parsed(value),
  json: ({ value }) => parsed(value),
};

/** The fields in `node`, a fieldset that is hidden while there is no form. */
export class Form {
  #fields = [];

  constructor(node) {
    this.node = node;
  }

  /** Show the fields of a form; null: there is none. */
  show(schema) {
    const required = listOf(schema?.required);
    this.#fields = Object.entries(schema?.properties ?? {}).map(([name, one]) => field(name, one, required.includes(name)));
    this.node.replaceChildren(...(schema ? [make("legend", {}, String(schema.title ?? "The agent asks"))] : []), ...this.#fields.map(({ row }) => row));
    this.node.hidden = !this.#fields.length;
  }

  /** The answer; undefined if there is no form, or if nothing was entered and `others` (a text or files) are sent. */
  answer(others) {
    const filled = this.#fields.filter(({ kind, input }) => kind === "checkbox" || input.value.trim() || input.validity.badInput);
    const touched = filled.some(({ kind, input }) => kind !== "checkbox" || input.checked);
    if (!this.#fields.length || (others && !touched)) return undefined;
    return Object.fromEntries(filled.map(({ name, kind, input }) => [name, kind in READ ? READ[kind](input) : input.value]));
  }

  /** Show what the host says of fields: pairs [path, text]. Focus the first. */
  refuse(faults) {
    for (const { name, input, fault } of this.#fields) {
      const own = faults.filter(([path]) => concerns(path, name)).map(([, text]) => text);
      fault.textContent = own.join("; ");
      if (own.length) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
    this.#fields.find(({ input }) => input.hasAttribute("aria-invalid"))?.input.focus();
  }
}

/** A path such as `message.parts[0].data.people`. */
function concerns(path, name) {
  const inside = path.replace(/^message\.parts\[\d+\]\.data\./, "");
  return inside === name || inside.startsWith(`${name}.`);
}

function field(name, schema, required) {
  const [id, kind] = [`pg-field-${unique()}`, kindOf(schema, required)];
  const about = { id, "aria-describedby": `${id}-help ${id}-fault`, "aria-required": required ? "true" : null };
  const input = INPUTS[kind](schema, about);
  const title = [String(schema.title ?? name), required ? make("span", { class: "quiet" }, " (required)") : null];
  const help = [schema.description, kind === "json" ? "(JSON)" : ""].filter(Boolean).join(" ");
  const fault = make("span", { id: `${id}-fault`, class: "pg-fault" });
  const label = kind === "checkbox" ? make("label", { class: "pg-check" }, input, make("span", {}, ...title.filter(Boolean))) : make("label", { for: id }, ...title);
  const row = make("div", { class: "pg-field" }, label, kind === "checkbox" ? null : input,
    make("span", { id: `${id}-help`, class: "quiet" }, help), fault);
  return { name, kind, input, fault, row };
}
