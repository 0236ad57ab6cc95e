// The playground: the choice of agent and dialect, and the conversation. The rest of the page needs no script.

import { curl, grpcurl, hasRpc, python } from "./copies.js";
import { DIALECTS, findDialect, GRPC, has, HTTP_JSON, JSON_RPC, request } from "./dialects.js";
import { byId, make, options, unique } from "./dom.js";
import { Form } from "./form.js";
import { Frames } from "./frames.js";
import { Hook, secret } from "./hooks.js";
import { formatOf, read } from "./reading.js";
import { remember, Tasks } from "./tasks.js";
import { Talk } from "./talk.js";
import { Answer, mine, past, describe } from "./view.js";
import { ask, Fault } from "./wire.js";

const LONGEST = 300; // characters of an answer in the status line
const KEPT = "a2a-playground-credential";
const place = byId("playground");
const BINDINGS = { [JSON_RPC]: "JSON-RPC", [HTTP_JSON]: "HTTP+JSON", [GRPC]: "gRPC (not from a browser)" };

let cards = []; // of all agents, as 1.0 has them, each with its slug
let loading = 0; // requests for them under way; their answers begin a new conversation
let talk = null;
let answer = null;
let hook = null;
let files = [];
const form = new Form(byId("pg-form"));

const chosen = () => cards.find((card) => card.slug === byId("pg-agent").value);
const ready = () => !loading && chosen() !== undefined;
const chosenDialect = () => findDialect(byId("pg-dialect").value);
const binding = () => byId("pg-binding").value;
const announce = (text) => { byId("pg-says").textContent = text; };

// Credentials

function secretHeader() {
  const kind = byId("pg-kind").value;
  if (!kind || !byId("pg-secret").value) return "";
  return kind === "bearer" ? "Authorization" : apiKeyHeader();
}

/** The name in the card; cards of agents that need no credentials have none. */
function apiKeyHeader() {
  const schemes = Object.values(chosen()?.securitySchemes ?? {});
  const key = schemes.map((one) => one.apiKeySecurityScheme).find((one) => one?.location === "header");
  return key?.name ?? place.dataset.apiKeyHeader;
}

function credentials() {
  const name = secretHeader();
  const value = byId("pg-secret").value;
  return name ? { [name]: name === "Authorization" ? `Bearer ${value}` : value } : {};
}

function headers() {
  const required = (chosen()?.capabilities?.extensions ?? []).filter((one) => one.required).map((one) => one.uri);
  return { ...credentials(), ...(required.length ? { "A2A-Extensions": required.join(", ") } : {}) };
}

function keep() {
  const kept = JSON.stringify([byId("pg-kind").value, byId("pg-secret").value]);
  if (byId("pg-keep").checked) sessionStorage.setItem(KEPT, kept);
  else sessionStorage.removeItem(KEPT);
}

function recall() {
  const kept = sessionStorage.getItem(KEPT);
  if (!kept) return;
  [byId("pg-kind").value, byId("pg-secret").value] = JSON.parse(kept);
  byId("pg-keep").checked = true;
}

// Agent, dialect, binding

async function loadAgents() {
  const [answered, found] = await fetchAgents();
  cards = found.map((card) => ({ ...card, slug: slugOf(card) })).filter((card) => card.slug);
  const named = new URLSearchParams(location.search).get("agent");
  const first = byId("pg-agent").value || cards.find((card) => card.slug === named)?.slug || document.querySelector("article")?.id;
  options(byId("pg-agent"), cards.map((card) => [card.slug, card.name]), first);
  showAgent();
  announce(answered.ok ? "" : `The host shows no agents: ${answered.status}. Credentials may be needed.`);
}

async function fetchAgents() {
  loading += 1;
  grpcLine();
  try {
    const answered = await fetch(new URL("agents/", location.href), { headers: { ...credentials(), "A2A-Version": "1.0" }, credentials: "omit", cache: "no-store" });
    return [answered, answered.ok ? (await answered.json()).agents : []];
  } finally {
    loading -= 1;
    grpcLine();
  }
}

function slugOf(card) {
  const paths = (card.supportedInterfaces ?? []).map((one) => /\/agents\/([^/]+)\//.exec(one.url)?.[1]);
  return paths.find(Boolean);
}

function showAgent() {
  const card = chosen();
  byId("pg-about").textContent = card?.description ?? "";
  byId("pg-mode").disabled = !card?.capabilities?.streaming;
  if (!card?.capabilities?.streaming) byId("pg-mode").value = "send";
  const examples = (card?.skills ?? []).flatMap((skill) => skill.examples ?? []).slice(0, 8);
  byId("pg-examples").replaceChildren(...examples.map((text) =>
    make("button", { type: "button", class: "pg-small", click: () => { byId("pg-text").value = text; byId("pg-text").focus(); grpcLine(); } }, text)));
  const pushes = Boolean(card?.capabilities?.pushNotifications);
  byId("pg-webhook").hidden = !pushes;
  if (!pushes && byId("pg-hook-on").checked) { // the host would refuse every message, and the switch is hidden
    byId("pg-hook-on").checked = false;
    switchHook();
  }
  showDialect();
}

function showDialect() {
  const one = chosenDialect();
  const offered = [JSON_RPC, ...(one.routes ? [HTTP_JSON] : []), ...(one.grpc ? [GRPC] : [])];
  const before = offered.includes(binding()) ? binding() : JSON_RPC;
  options(byId("pg-binding"), offered.map((name) => [name, BINDINGS[name]]), before);
  if (hook) switchHook(); // its key is of the dialect
  begin();
}

function grpcLine() {
  const grpc = binding() === GRPC;
  byId("pg-grpc").hidden = !grpc;
  byId("pg-send").disabled = grpc || !ready();
  if (!grpc) return;
  const operation = byId("pg-mode").value;
  const input = { id: unique(), text: byId("pg-text").value || "Hello", files: [], wait: true };
  const version = chosenDialect().version ? { "A2A-Version": chosenDialect().version } : {};
  const about = { dialect: chosenDialect(), operation, input, secretHeader: secretHeader(), grpc: grpcWay() };
  byId("pg-grpc-line").textContent = grpcurl({ ...about, headers: { ...version, ...headers() } });
  byId("pg-grpc-note").textContent = [
    about.grpc.address ? "" : "gRPC is off on this host: its operator sets A2A_GRPC_PORT.",
    files.length ? "Files are not in it: send the message by another binding, and copy that request as grpcurl." : "",
  ].join(" ").trim();
}

/** The gRPC address in the card; without TLS if this page has none. */
function grpcWay() {
  const way = (chosen()?.supportedInterfaces ?? []).find((one) => one.protocolBinding === GRPC);
  return { agent: chosen()?.slug ?? "", address: way?.url ?? "", plain: location.protocol === "http:" };
}

// Conversation

const url = () => new URL(`agents/${chosen()?.slug}/${chosenDialect().mount}`, location.href).href;

/** A new conversation, with what is chosen now. */
function begin() {
  talk?.leave();
  [talk, answer] = [null, null];
  byId("pg-turns").replaceChildren();
  form.show(null);
  linked("");
  showTask("", "");
  announce("");
  grpcLine();
  tasks.offer(chosen(), chosenDialect(), binding());
}

function way() {
  const fixed = { url: url(), dialect: chosenDialect(), binding: binding(), streams: byId("pg-mode").value === "stream" };
  return { ...fixed, headers, watch: () => watched(fixed) };
}

/** A watcher that adds to each request what copies of it need. */
function watched(fixed) {
  const watch = frames.watch();
  const about = { base: fixed.url, dialect: fixed.dialect, binding: fixed.binding, secretHeader: secretHeader(), grpc: grpcWay() };
  const begins = !talk?.continuing;
  return { ...watch, sent: (sent) => watch.sent({ ...sent, ...about, begins }) };
}

const show = {
  event(event) {
    answer.take(event);
    rememberTask();
    if (event.state) { showForm(event); showTask(talk.task, event.state); announce(`${chosen().name} ${describe(event.state)}`); }
    else if (event.id) showTask(talk.task, talk.state);
  },
  cut(milliseconds) {
    linked("connection lost");
    announce(`The connection was lost. It is tried again in ${Math.ceil(milliseconds / 1000)} s, from where it was.`);
  },
  joined() {
    if (!byId("pg-link").hidden) announce("Connected again.");
    linked("");
  },
};

/** Offer the fields of a question, for as long as it waits. */
function showForm({ state, words }) {
  form.show(state === "input-required" ? words.find((one) => "form" in one)?.form ?? null : null);
}

/** Remember a task whose id has become known. */
function rememberTask() {
  if (!talk.task || talk.shown === talk.task) return;
  talk.shown = talk.task;
  remember(talk.task, { agent: chosen().slug });
  const late = hook && chosenDialect().setWebhook;
  if (late) talk.setWebhook(hook.given).catch((fault) => refused(answer, fault));
}

function linked(text) {
  byId("pg-link").textContent = text;
  byId("pg-link").hidden = !text;
}

function showTask(task, state) {
  byId("pg-task").textContent = task ? `Task ${task}: ${state || "sent"}` : "";
  byId("pg-cancel").disabled = !task || ["", "completed", "failed", "canceled", "rejected", "answered"].includes(state);
}

async function send(event) {
  event.preventDefault();
  const text = byId("pg-text").value;
  const data = form.answer(text || files.length);
  if ((!text && !files.length && data === undefined) || binding() === GRPC || !ready()) return;
  talk ??= new Talk(way(), show);
  talk.continuing = talk.goesOn;
  answer = new Answer(chosen().name);
  const message = { text, data, files: await Promise.all(files.map(readFile)) };
  byId("pg-turns").append(mine(message), answer.node);
  byId("pg-text").value = "";
  attach([]);
  const fault = await attempt(talk, () => talk.send({ ...message, webhook: hook?.given }));
  if (!fault) return;
  if (!byId("pg-text").value) byId("pg-text").value = text; // to send it again
  form.refuse(violations(fault.error));
}

/** The fields that a refusal names, as [path, text], wherever the dialect has them. */
function violations(error) {
  if (typeof error !== "object" || error === null) return [];
  if (typeof error.field === "string") return [[error.field, error.description ?? error.message]];
  return Object.values(error).flatMap(violations);
}

/** Run a step of a conversation and show its result. Returns the refusal; null: there was none. */
async function attempt(own, act) {
  const shown = answer;
  shown.node.setAttribute("aria-busy", "true");
  try {
    await act();
    if (own === talk) announce(sentence(own.state, shown.text));
    return null;
  } catch (fault) {
    if (fault.name === "AbortError") return null;
    refused(shown, fault);
    return fault;
  } finally {
    shown.node.removeAttribute("aria-busy");
  }
}

function sentence(state, text) {
  const did = `${chosen().name} ${describe(state)}`;
  if (!text) return `${did}.`;
  return `${did}: ${text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text}`;
}

function refused(shown, fault) {
  const text = fault instanceof Fault ? `The host refused: ${fault.message}` : `It cannot go on: ${fault.message}`;
  const details = fault.error ? make("pre", { tabindex: 0, "aria-label": "The refusal" }, JSON.stringify(fault.error, null, 2)) : null;
  shown?.node.append(make("div", { class: "pg-refused" }, make("p", {}, text), details, advice(fault)));
  announce(text);
}

function advice(fault) {
  const error = JSON.stringify(fault.error ?? {});
  if (fault.status === 401 || /Unauthenticated|credential/i.test(fault.message)) return make("p", {}, "Add your credentials under Credentials.");
  if (hook && /url|webhook|address|private|http/i.test(error)) return make("p", {}, hookAdvice());
  return null;
}

const hookAdvice = () =>
  `The host only calls public HTTPS addresses, and ${hook.given.url} is not one. To try webhooks on one machine, start it with ` +
  "A2A_WEBHOOK_ALLOW_PRIVATE=1; elsewhere its operator sets A2A_PUBLIC_URL. Without the webhook the message can be sent.";

async function cancel() {
  try {
    await talk.cancel();
  } catch (fault) {
    refused(answer, fault);
  }
}

/** Open a task again, and follow it if it has not ended. */
async function look(id) {
  begin();
  talk = new Talk(way(), {
    ...show,
    event(event) {
      if (event.kind === "task" && event.history.length) {
        byId("pg-turns").replaceChildren(...event.history.map((one) => past(one, chosen().name)), answer.node);
      }
      show.event(event);
    },
  });
  answer = new Answer(chosen().name);
  byId("pg-turns").append(answer.node);
  await attempt(talk, () => talk.attach(id));
}

// Files

function attach(list) {
  files = list;
  byId("pg-files").replaceChildren(...files.map((file) =>
    make("li", {}, `${file.name} (${file.size} bytes) `, make("button", {
      type: "button", class: "pg-small", "aria-label": `Leave out ${file.name}`, click: () => attach(files.filter((one) => one !== file)),
    }, "×"))));
  grpcLine();
}

function readFile(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({
      name: file.name, size: file.size, type: file.type || "application/octet-stream", bytes: reader.result.slice(reader.result.indexOf(",") + 1),
    });
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

function droppable(target) {
  target.addEventListener("dragover", (event) => { event.preventDefault(); target.classList.add("pg-over"); });
  target.addEventListener("dragleave", () => target.classList.remove("pg-over"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("pg-over");
    attach([...files, ...event.dataTransfer.files]);
  });
}

// Webhooks

async function switchHook() {
  hook?.stop();
  hook = null;
  const note = (text) => { byId("pg-hook-note").textContent = text; };
  note("");
  byId("pg-arrivals").hidden = !byId("pg-hook-on").checked;
  if (!byId("pg-hook-on").checked) return;
  const { url: address, read: from } = await (await fetch(place.dataset.hooks, { cache: "no-store" })).json();
  const key = chosenDialect().setWebhook ? null : secret();
  hook = new Hook({ url: address, read: from, key, list: byId("pg-deliveries"), notify: note });
  hook.given = key ? { url: address, token: key } : { url: address };
  hook.start();
  note(`Registered with the next message: ${address}. It receives for half an hour.`);
}

// Copies

async function copied(text, what) {
  byId("pg-copy").hidden = false;
  byId("pg-copy-text").value = text;
  try {
    await navigator.clipboard.writeText(text);
    byId("pg-copied").textContent = `Copied ${what} to the clipboard.`;
  } catch {
    byId("pg-copy-text").select();
    byId("pg-copied").textContent = `The browser does not let this page copy: take ${what} from the field.`;
  }
}

const frames = new Frames(byId("pg-frames"), [
  ["Copy as curl", (sent) => copied(curl(sent), "a line for a shell")],
  ["Copy as Python", (sent) => copied(python(sent), "a program in Python")],
  ["Copy as grpcurl", (sent) => copied(grpcurl(sent), "a line for gRPC"), hasRpc],
]);

const tasks = new Tasks(byId("pg-tasks"), {
  look,
  async list() {
    const one = way();
    const listing = request(one.dialect, one.binding, "list", {});
    const answered = await ask(one.url, listing, { headers: headers(), watch: one.watch() });
    return read(answered, formatOf(one.dialect, one.binding === HTTP_JSON)).tasks;
  },
  can: () => has(chosenDialect(), "list") && binding() !== GRPC,
});

function listen() {
  byId("pg-agent").addEventListener("change", showAgent);
  byId("pg-dialect").addEventListener("change", showDialect);
  for (const id of ["pg-binding", "pg-mode", "pg-new"]) byId(id).addEventListener(id === "pg-new" ? "click" : "change", begin);
  for (const id of ["pg-kind", "pg-secret"]) byId(id).addEventListener("change", () => { keep(); loadAgents(); });
  byId("pg-keep").addEventListener("change", keep);
  byId("pg-settings").addEventListener("submit", (event) => event.preventDefault());
  byId("pg-say").addEventListener("submit", send);
  byId("pg-text").addEventListener("input", grpcLine);
  byId("pg-text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("pg-say").requestSubmit();
  });
  byId("pg-choose").addEventListener("change", (event) => { attach([...files, ...event.target.files]); event.target.value = ""; });
  byId("pg-cancel").addEventListener("click", cancel);
  byId("pg-clear").addEventListener("click", () => frames.clear());
  byId("pg-hook-on").addEventListener("change", switchHook);
  droppable(byId("pg-say"));
}

options(byId("pg-dialect"), DIALECTS.map((one) => [one.code, one.name]), "v10");
recall();
listen();
place.hidden = false;
byId("agents").open = false; // it was for those without scripts
await loadAgents();
