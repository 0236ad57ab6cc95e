// The same request by other means: a line for a shell, a program in Python, a line for gRPC. Secrets are not in them.

import { request, rpcOf } from "./dialects.js";
import { unique } from "./dom.js";

/** Where the shell and the program take the credential from. */
const VARIABLE = "A2A_CREDENTIAL";
const DIRECT = new Set(["Accept", "Idempotency-Key"]);
const LONGEST_LINE = 100_000;

/** A message that is sent again is another message, of another task if it began one. */
function fresh(sent) {
  return sent.said.id ? JSON.stringify(request(sent.spoken, sent.binding, sent.operation, anew(sent)).body) : sent.text;
}

function anew({ said, begins }) {
  return said.id ? { ...said, id: unique(), task: begins && said.task ? unique() : said.task } : said;
}

/** Headers as [name, value], the credential's value in the given form. */
const headersOf = (sent, secret) =>
  Object.entries(sent.headers)
    .filter(([name]) => !DIRECT.has(name))
    .map(([name, value]) => [name, name === sent.secretHeader ? secret(value) : value]);

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The credential as a shell puts it in: its value is in no line. */
const shellSecret = (value) => `${value.startsWith("Bearer ") ? "Bearer " : ""}$${VARIABLE}`;
const inShell = (sent, name, value) =>
  `-H ${name === sent.secretHeader ? `"${name}: ${value}"` : quoted(`${name}: ${value}`)}`;

/** A command that says the same with curl. */
export function curl(sent) {
  const headers = headersOf(sent, shellSecret).map(([name, value]) => inShell(sent, name, value));
  const line = ["curl", sent.streams ? "-sN" : "-s", ...(sent.method === "GET" ? [] : ["-X", sent.method]), quoted(sent.url), ...headers];
  if (!sent.text) return line.join(" ");
  const text = fresh(sent);
  if (text.length < LONGEST_LINE) return [...line, "-d", quoted(text)].join(" ");
  return `${line.join(" ")} -d @- <<'END'\n${text}\nEND`;
}

// Python

const lit = (value) => JSON.stringify(value); // what JSON writes of a text, Python reads

/** A program that says the same: by the official client in 1.0 and 0.3, by httpx in the dialects that it does not speak. */
export function python(sent) {
  const official = ["v10", "v03"].includes(sent.spoken.code) && OFFICIAL[sent.operation];
  return official ? sdk(sent, official(sent)) : plain(sent);
}

const part = (file) =>
  `Part(raw=base64.b64decode(${lit(file.bytes)}), filename=${lit(file.name)}, media_type=${lit(file.type)})`;

function message({ said, begins }) {
  const parts = [...(said.text || !said.files.length ? [`Part(text=${lit(said.text)})`] : []), ...said.files.map(part)];
  const ids = [["task_id", begins ? "" : said.task], ["context_id", said.context]].filter(([, id]) => id);
  return [
    "        message = Message(",
    "            role=Role.ROLE_USER,",
    "            message_id=uuid.uuid4().hex,",
    ...ids.map(([name, id]) => `            ${name}=${lit(id)},`),
    `            parts=[${parts.join(", ")}],`,
    "        )",
    "        async for event in client.send_message(SendMessageRequest(message=message)):",
    "            print(event)",
  ];
}
const one = (method, type) => ({ said }) => [`        print(await client.${method}(${type}(id=${lit(said.task)})))`];
const OFFICIAL = { send: message, stream: message, get: one("get_task", "GetTaskRequest"), cancel: one("cancel_task", "CancelTaskRequest") };

function sdk(sent, lines) {
  const types = ["CancelTaskRequest", "GetTaskRequest", "Message", "Part", "Role", "SendMessageRequest"].filter((name) =>
    lines.some((line) => new RegExp(`\\b${name}\\(|\\b${name}\\.`).test(line)));
  const uses = (name) => lines.some((line) => line.includes(`${name}.`)) ? [`import ${name}`] : [];
  const headers = headersOf(sent, () => "").filter(([name]) => !["Content-Type", "A2A-Version"].includes(name));
  const dict = headers.map(([name, value]) => `${lit(name)}: ${name === sent.secretHeader ? secret(sent) : lit(value)}`).join(", ");
  return [
    '# pip install "a2a-sdk>=1.3"',
    "import asyncio",
    ...uses("base64"),
    ...(dict.includes("os.environ") ? ["import os"] : []),
    ...uses("uuid"),
    "",
    "import httpx",
    "from a2a.client import ClientConfig, create_client",
    `from a2a.types import ${types.join(", ")}`,
    "",
    "",
    "async def main():",
    `    async with httpx.AsyncClient(timeout=60, headers={${dict}}) as http:`,
    "        config = ClientConfig(",
    `            httpx_client=http, streaming=${sent.streams ? "True" : "False"}, supported_protocol_bindings=[${lit(sent.binding)}]`,
    "        )",
    `        client = await create_client(${lit(sent.base)}, config)`,
    ...lines,
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

const secret = (sent) => {
  const word = String(sent.headers[sent.secretHeader]).startsWith("Bearer ") ? '"Bearer " + ' : "";
  return `${word}os.environ[${lit(VARIABLE)}]`;
};

function plain(sent) {
  const headers = headersOf(sent, () => "");
  const dict = headers.map(([name, value]) => `    ${lit(name)}: ${name === sent.secretHeader ? secret(sent) : lit(value)},`);
  const asked = [lit(sent.method), lit(sent.url), "headers=HEADERS", ...(sent.text ? ["content=BODY.encode()"] : []), "timeout=60"].join(", ");
  const reading = sent.streams
    ? [`with httpx.stream(${asked}) as answer:`, "    for line in answer.iter_lines():", "        print(line)"]
    : [`print(httpx.request(${asked}).text)`];
  return [
    "# pip install httpx",
    ...(dict.join("").includes("os.environ") ? ["import os", ""] : []),
    "import httpx",
    "",
    "HEADERS = {",
    ...dict,
    "}",
    ...(sent.text ? [`BODY = ${lit(fresh(sent))}`] : []),
    "",
    ...reading,
    "",
  ].join("\n");
}

/** Can it be said by gRPC? */
export const hasRpc = (sent) => rpcOf(sent.spoken, sent.operation, sent.said) !== null;

/** A command for gRPC, which browsers do not speak. `sent.grpc`: {agent, address, plain}; no address: gRPC is off. */
export function grpcurl(sent) {
  const { agent, address, plain } = sent.grpc;
  const { path, body } = rpcOf(sent.spoken, sent.operation, anew(sent));
  const metadata = [["a2a-agent", agent], ...headersOf(sent, shellSecret).filter(([name]) => name !== "Content-Type")];
  const line = ["grpcurl", ...(plain ? ["-plaintext"] : []), ...metadata.map(([name, value]) => inShell(sent, name, value))];
  const text = JSON.stringify(body);
  const where = [address || "HOST:PORT", path];
  if (text.length < LONGEST_LINE) return [...line, "-d", quoted(text), ...where].join(" ");
  return `${[...line, "-d", "@", ...where].join(" ")} <<'END'\n${text}\nEND`;
}
