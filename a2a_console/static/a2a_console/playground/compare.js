// One call in two versions side by side: the request in each of them, and the task as each shows it.

import { DIALECTS, findDialect, has, HTTP_JSON, JSON_RPC, request } from "./dialects.js";
import { byId, make, options } from "./dom.js";

const WAYS = DIALECTS.flatMap((one) => [[`${one.code} ${JSON_RPC}`, `${one.name} · JSON-RPC`], ...(one.routes ? [[`${one.code} ${HTTP_JSON}`, `${one.name} · HTTP+JSON`]] : [])]);

/** Open the dialog for an exchange; `look(dialect, binding, task)` returns the text of the answer with a task. */
export function compare(sent, task, look) {
  const texts = [null, null];
  const sides = [`${sent.dialect.code} ${sent.binding}`, sent.dialect.code === "v10" ? `v03 ${JSON_RPC}` : `v10 ${JSON_RPC}`].map((way, index) => {
    const node = make("div", { class: "pg-side" });
    const choice = make("select", { "aria-label": index ? "Right version" : "Left version", change: fill });
    options(choice, WAYS, way);
    node.append(choice, make("pre", { tabindex: 0, "aria-label": "The request" }), make("pre", { tabindex: 0, "aria-label": "The task" }));
    async function fill() {
      const [code, binding] = choice.value.split(" ");
      texts[index] = [outgoing(sent, findDialect(code), binding), "…"];
      mark(texts, sides);
      texts[index][1] = task ? await look(findDialect(code), binding, task) : "There is no task yet.";
      mark(texts, sides);
    }
    return { node, fill };
  });
  byId("pg-sides").replaceChildren(...sides.map((one) => one.node));
  byId("pg-compare").showModal();
  for (const one of sides) one.fill();
}

function outgoing({ operation, input }, dialect, binding) {
  if (operation !== "webhook" && !has(dialect, operation)) return "This version has no such operation.";
  if (operation === "webhook" && !dialect.setWebhook) return "In this version the message registers the webhook.";
  const { method, path, headers, body } = request(dialect, binding, operation, input);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`${method} /${dialect.mount}${path}`, ...lines, "", body === null ? "" : JSON.stringify(body.id ? { ...body, id: 1 } : body, null, 2)].join("\n");
}

/** Show both texts; lines that the other one lacks are marked. */
function mark(texts, sides) {
  sides.forEach(({ node }, index) => node.querySelectorAll("pre").forEach((pre, which) => {
    const other = new Set((texts[1 - index]?.[which] ?? "").split("\n").map((line) => line.trim()));
    const lines = (texts[index]?.[which] ?? "").split("\n");
    pre.replaceChildren(...lines.flatMap((line) => [other.has(line.trim()) ? line : make("mark", {}, line), "\n"]));
  }));
}
