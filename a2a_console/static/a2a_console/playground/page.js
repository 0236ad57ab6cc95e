// The playground: the choice of agent and dialect, and the chat. The rest of the page needs no script.

import { Chats } from "./chats.js";
import { compare } from "./compare.js";
import { curl, grpcurl, hasRpc, javascript, python } from "./copies.js";
import { DIALECTS, findDialect, GRPC, HTTP_JSON, JSON_RPC, request } from "./dialects.js";
import { byId, make, options, pretty, unique } from "./dom.js";
import { Form } from "./form.js";
import { Frames } from "./frames.js";
import { Hook, secret } from "./hooks.js";
import { ENDED, formatOf, read, USAGE } from "./reading.js";
import { Talk, UNSEEN } from "./talk.js";
import { Answer, describe, mine } from "./view.js";
import { ask, Fault } from "./wire.js";

const LONGEST = 300; // characters of an answer that is read out
const MOST_EARLIER = 10; // tasks of a chat that are shown
const KEPT = "a2a-playground-credential";
const place = byId("playground");
const BINDINGS = { [JSON_RPC]: "JSON-RPC", [HTTP_JSON]: "HTTP+JSON", [GRPC]: "gRPC (not from a browser)" };
const ASKS = new Set(["input-required", "auth-required"]);
/** The settings in the address of the page, each with the value that is left out. */
const SETTINGS = [["version", "pg-dialect", "v10"], ["binding", "pg-binding", JSON_RPC], ["response", "pg-mode", "stream"]];

let cards = []; // of all agents, as 1.0 has them, each with its slug
let loading = 0; // requests for them under way; their answers begin a new chat
let talk = null;
let answer = null;
let coming = []; // of a task that is read again: the user's messages that its events have not reached
let offered = ""; // as the first message
let hook = null;
let files = [];
const form = new Form(byId("pg-form"));

const chosen = () => cards.find((card) => card.slug === byId("pg-agent").value);
const ready = () => !loading && chosen() !== undefined;
const chosenDialect = () => findDialect(byId("pg-dialect").value);
const binding = () => byId("pg-binding").value;
const announce = (text) => { byId("pg-says").textContent = text; };
const declared = () => (chosen()?.capabilities?.extensions ?? []).map((one) => one.uri);

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

/** Credentials, and all extensions that the card declares: the page shows what they tell. */
const headers = () => ({ ...credentials(), ...(declared().length ? { "A2A-Extensions": declared().join(", ") } : {}) });

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
  await arrive();
  if (!answered.ok) announce(`The host shows no agents: ${answered.status}. Credentials may be needed.`);
}

/** Show what the address of the page names: agent, settings, task. */
async function arrive() {
  const asked = new URLSearchParams(location.search);
  const wanted = [asked.get("agent"), byId("pg-agent").value, document.querySelector("article")?.id];
  options(byId("pg-agent"), cards.map((card) => [card.slug, card.name]), wanted.find((slug) => cards.some((card) => card.slug === slug)));
  for (const [name, id, usual] of SETTINGS) byId(id).value = asked.get(name) ?? usual;
  showAgent();
  const task = asked.get("task");
  if (task && ready()) await open(chats.find(task) ?? { agent: chosen().slug, tasks: [task] });
}

/** Put agent, settings and task into the address; `anew`: as another page of the history. */
function address(task, anew = false) {
  const said = new URLSearchParams({ agent: byId("pg-agent").value });
  for (const [name, id, usual] of SETTINGS) if (byId(id).value !== usual) said.set(name, byId(id).value);
  if (task) said.set("task", task);
  const there = `${location.pathname}?${said}`;
  if (there !== location.pathname + location.search) history[anew ? "pushState" : "replaceState"](null, "", there);
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
  const newcomer = chats.none && examples.length > 0;
  if (newcomer && ["", offered].includes(byId("pg-text").value)) byId("pg-text").value = offered = examples[0];
  byId("pg-first").textContent = newcomer ? `Press Enter to send “${examples[0]}” to ${card.name}, or write something else.` : `Write to ${card?.name ?? "an agent"}, or pick an example.`;
  const pushes = Boolean(card?.capabilities?.pushNotifications);
  byId("pg-webhook").hidden = !pushes;
  if (!pushes && byId("pg-hook-on").checked) { // the host would refuse every message, and the switch is hidden
    byId("pg-hook-on").checked = false;
    switchHook();
  }
  showDialect();
  listTasks();
}

/** Take over the tasks that the host lists for this caller, if it does. This is no part of the talk, so it is not on the wire. */
async function listTasks() {
  const [agent, dialect] = [chosen()?.slug, DIALECTS[0]];
  if (!agent) return;
  try {
    const found = await ask(url(dialect), request(dialect, JSON_RPC, "list", {}), { headers: headers(), watch: UNSEEN });
    chats.list(agent, read(found, formatOf(dialect, false)).tasks, !found.nextPageToken);
  } catch {
    // It lists none for this caller.
  }
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
    about.grpc.address ? "" : "The card names no address of gRPC: its operator sets A2A_GRPC_URL.",
    files.length ? "Files are not in it: send the message by another binding, and copy that request as grpcurl." : "",
  ].join(" ").trim();
}

/** The gRPC address in the card, which names its scheme. */
function grpcWay() {
  const way = (chosen()?.supportedInterfaces ?? []).find((one) => one.protocolBinding === GRPC);
  const [scheme, address] = (way?.url ?? `${location.protocol}//`).split("//");
  return { agent: chosen()?.slug ?? "", address, plain: scheme === "http:" };
}

// The chat

const url = (dialect = chosenDialect()) => new URL(`agents/${chosen()?.slug}/${dialect.mount}`, location.href).href;

/** A new chat, with what is chosen now. */
function begin() {
  talk?.leave();
  answer?.busy(false);
  [talk, answer, coming] = [null, null, []];
  byId("pg-turns").replaceChildren();
  form.show(null);
  linked("");
  showTask("", "");
  announce("");
  grpcLine();
  byId("pg-way").textContent = [chosenDialect().name, BINDINGS[binding()], byId("pg-mode").value === "stream" ? "streaming" : "blocking"].join(" · ");
  chats.draw("");
}

function beginAnew() {
  begin();
  address("", true);
  byId("pg-text").focus();
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
    if (coming.length && ASKS.has(answer.state) && event.state && !ASKS.has(event.state)) addTurn(coming.shift());
    answer.take(event);
    if (event.state) {
      showForm(event);
      announce(`${chosen().name} ${describe(event.state)}`);
    }
    rememberTask();
    showTask(talk.task, talk.state);
  },
  cut(times) {
    linked(`connection lost, trying again (${times}) …`);
    if (times === 1) announce("The connection was lost. It is tried again, from where it was.");
  },
  joined() {
    if (!byId("pg-link").hidden) announce("Connected again.");
    linked("");
  },
};

/** Add a message of the user's, if there is one, and the answer to it. */
function addTurn(message) {
  answer?.busy(false);
  answer = new Answer(chosen().name, answer);
  byId("pg-turns").append(...(message ? [mine(message, () => editAgain(message))] : []), answer.node);
}

/** Begin a new chat with a message that was sent before, to be edited. */
function editAgain({ text, words, given = [] }) {
  beginAnew();
  byId("pg-text").value = text ?? words.find((one) => "text" in one)?.text ?? "";
  attach(given);
}

/** Offer the fields of a question, for as long as it waits. */
function showForm({ state, words }) {
  const calls = words.flatMap((one) => (Array.isArray(one.data?.calls) ? one.data.calls : [])).filter((one) => one?.id !== undefined);
  form.show(state === "input-required" ? words.find((one) => "form" in one)?.form ?? null : null, calls);
}

/** Remember a task whose id or state has become known. */
function rememberTask() {
  if (!talk.task || talk.shown === talk.task + talk.state) return;
  const late = hook && chosenDialect().setWebhook && !talk.shown?.startsWith(talk.task);
  talk.shown = talk.task + talk.state;
  chats.note({ task: talk.task, context: talk.context, agent: chosen().slug, title: talk.title, state: talk.state });
  address(talk.task);
  if (late) talk.setWebhook(hook.given).catch((fault) => refused(answer, fault));
}

function linked(text) {
  byId("pg-link").textContent = text;
  byId("pg-link").hidden = !text;
}

function showTask(task, state) {
  byId("pg-task").textContent = task ? `Task ${task}: ${state || "sent"}` : "";
  byId("pg-cancel").hidden = !task || state === "answered" || ENDED.has(state);
  const there = byId("pg-console");
  there.hidden = !task || !place.dataset.console;
  if (!there.hidden) there.href = `${place.dataset.console}t/${encodeURIComponent(task)}`;
}

async function send(event) {
  event.preventDefault();
  const text = byId("pg-text").value;
  const others = Boolean(text || files.length);
  const data = form.answer(others);
  if (binding() === GRPC || !ready() || ((data !== undefined || !others) && form.check())) return;
  if (!others && data === undefined) return;
  const message = { text, data, files: await Promise.all(files.map(readFile)), given: files };
  talk ??= new Talk(way(), show);
  talk.continuing = talk.goesOn;
  talk.title ??= (text || files[0]?.name || "").slice(0, 80);
  [coming, byId("pg-text").value] = [[], ""];
  addTurn(message);
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

/** Run a step of a chat, show its result, and wait with it if the task does. Returns the refusal; null: there was none. */
async function attempt(own, act) {
  const first = answer;
  first.busy(true);
  try {
    await act();
    if (own !== talk) return null;
    announce(sentence(own.state, answer.text));
    await showUsage(own);
    if (ASKS.has(own.state)) waitFor(own);
    return null;
  } catch (fault) {
    if (fault.name === "AbortError" || own !== talk) return null;
    refused(answer, fault);
    return fault;
  } finally {
    first.busy(false);
  }
}

/** Ask for the usage of models, which streams do not tell. */
async function showUsage(own) {
  if (!own.task || !ENDED.has(own.state) || !declared().includes(USAGE)) return;
  answer.take({ kind: "usage", words: [], usage: (await own.read(own.task)).usage });
}

/** Show the chat anew when somebody else has answered its question. */
async function waitFor(own) {
  try {
    await own.wait();
    if (own === talk) await open(chats.find(own.task));
  } catch {
    // The user did, or left.
  }
}

function sentence(state, text) {
  const did = `${chosen().name} ${describe(state)}`;
  if (!text) return `${did}.`;
  return `${did}: ${text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text}`;
}

function refused(shown, fault) {
  const text = fault instanceof Fault ? `Refused: ${fault.message}` : `It cannot go on: ${fault.message}`;
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

/** Show a chat, and follow its last task. */
async function open({ agent, tasks }) {
  if (!cards.some((card) => card.slug === agent)) return linked(`The agent ${agent} is not here.`);
  if (agent !== byId("pg-agent").value) {
    byId("pg-agent").value = agent;
    showAgent();
  }
  begin();
  const [last, own] = [tasks.at(-1), new Talk(way(), show)];
  talk = own;
  own.title = chats.find(last)?.title;
  address(last, true);
  chats.draw(last);
  for (const id of tasks.slice(-MOST_EARLIER, -1)) {
    const earlier = await own.read(id).catch(() => null); // it may have been removed
    if (own !== talk) return;
    if (!earlier) continue;
    showHistory(earlier.history);
    answer.take(earlier);
  }
  addTurn(null);
  own.show = { ...show, event: (event) => { if (event.kind === "task" && event.history.length) retell(event); show.event(event); } };
  await attempt(own, () => own.attach(last));
  if (own === talk) answer.node.before(...coming.splice(0).map((message) => mine(message, () => editAgain(message))));
}

/** Begin with the first message of a task whose events come again, or show all messages. */
function retell({ history }) {
  talk.title ||= history.find((one) => one.mine)?.words.find((one) => "text" in one)?.text.slice(0, 80);
  answer.node.remove();
  if (!talk.replays) return showHistory(history);
  coming = history.filter((one) => one.mine);
  return addTurn(coming.shift());
}

function showHistory(history) {
  for (const one of history) {
    if (one.mine) addTurn(one);
    else answer?.take({ kind: "message", words: one.words });
  }
  if (!history.length) addTurn(null);
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

const frames = new Frames(byId("pg-frames"), byId("pg-total"), [
  ["Copy as curl", (sent) => copied(curl(sent), "a line for a shell")],
  ["Copy as Python", (sent) => copied(python(sent), "a program in Python")],
  ["Copy as JavaScript", (sent) => copied(javascript(sent), "a program in JavaScript")],
  ["Copy as grpcurl", (sent) => copied(grpcurl(sent), "a line for gRPC"), hasRpc],
  ["Compare versions", (sent) => compare(sent, talk?.task, readAs)],
]);

/** The text of a task in another version. */
async function readAs(dialect, way, task) {
  try {
    return pretty(JSON.stringify(await ask(url(dialect), request(dialect, way, "get", { task }), { headers: headers(), watch: UNSEEN })));
  } catch (fault) {
    return `It cannot be read: ${fault.message}`;
  }
}

const chats = new Chats(byId("pg-list"), open);

function listen() {
  byId("pg-agent").addEventListener("change", () => { showAgent(); address("", true); });
  byId("pg-dialect").addEventListener("change", () => { showDialect(); address("", true); });
  for (const id of ["pg-binding", "pg-mode"]) byId(id).addEventListener("change", () => { begin(); address("", true); });
  byId("pg-new").addEventListener("click", beginAnew);
  addEventListener("popstate", arrive);
  addEventListener("storage", () => chats.reload());
  for (const id of ["pg-kind", "pg-secret"]) byId(id).addEventListener("change", () => { keep(); loadAgents(); });
  byId("pg-keep").addEventListener("change", keep);
  byId("pg-settings").addEventListener("submit", (event) => event.preventDefault());
  byId("pg-say").addEventListener("submit", send);
  byId("pg-text").addEventListener("input", grpcLine);
  byId("pg-text").addEventListener("focus", ({ target }) => { if (target.value === offered) target.select(); });
  byId("pg-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("pg-say").requestSubmit();
  });
  byId("pg-choose").addEventListener("change", (event) => { attach([...files, ...event.target.files]); event.target.value = ""; });
  byId("pg-cancel").addEventListener("click", cancel);
  byId("pg-clear").addEventListener("click", () => frames.clear());
  byId("pg-hook-on").addEventListener("change", switchHook);
  droppable(byId("pg-say"));
}

options(byId("pg-dialect"), DIALECTS.map((one) => [one.code, one.name]), "v10");
options(byId("pg-binding"), Object.entries(BINDINGS), JSON_RPC);
recall();
listen();
place.hidden = false;
byId("agents").open = false; // it was for those without scripts
const wide = matchMedia("(min-width: 60rem)").matches;
byId("pg-chats").open = wide;
await loadAgents();
if (wide) byId("pg-text").focus();
