// Copies of a request: as a line for a shell, programs in Python and JavaScript, a line for gRPC. They contain no secrets.

import { request, rpcOf } from "./dialects.js";
import { unique } from "./dom.js";

/** The variable from which shell and program take the credential. */
const VARIABLE = "A2A_CREDENTIAL";
const DIRECT = new Set(["Accept", "Idempotency-Key"]);
const LONGEST_LINE = 100_000;

/** A message that is sent again is another message, of another task if it began one. */
function fresh(sent) {
  return sent.input.id ? JSON.stringify(request(sent.dialect, sent.binding, sent.operation, renew(sent)).body) : sent.text;
}

function renew({ input, begins }) {
  return input.id ? { ...input, id: unique(), task: begins && input.task ? unique() : input.task } : input;
}

/** Headers as [name, value], the credential's value in the given form. */
const headersOf = (sent, secret) =>
  Object.entries(sent.headers)
    .filter(([name]) => !DIRECT.has(name))
    .map(([name, value]) => [name, name === sent.secretHeader ? secret(value) : value]);

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The credential as a variable of the shell. */
const shellSecret = (value) => `${value.startsWith("Bearer ") ? "Bearer " : ""}$${VARIABLE}`;
const inShell = (sent, name, value) =>
  `-H ${name === sent.secretHeader ? `"${name}: ${value}"` : quoted(`${name}: ${value}`)}`;

/** The request as a command with curl. */
export function curl(sent) {
  const headers = headersOf(sent, shellSecret).map(([name, value]) => inShell(sent, name, value));
  const line = ["curl", sent.streams ? "-sN" : "-s", ...(sent.method === "GET" ? [] : ["-X", sent.method]), quoted(sent.url), ...headers];
  if (!sent.text) return line.join(" ");
  const text = fresh(sent);
  if (text.length < LONGEST_LINE) return [...line, "-d", quoted(text)].join(" ");
  return `${line.join(" ")} -d @- <<'END'\n${text}\nEND`;
}

// Python

const lit = (value) => JSON.stringify(value); // Python reads the strings that JSON writes

/** The request as a program: with the official client in 1.0 and 0.3, with httpx in the dialects that it does not speak. */
export function python(sent) {
  const official = ["v10", "v03"].includes(sent.dialect.code) && OFFICIAL[sent.operation];
  return official ? sdk(sent, official(sent)) : plain(sent);
}

const part = (file) =>
  `Part(raw=base64.b64decode(${lit(file.bytes)}), filename=${lit(file.name)}, media_type=${lit(file.type)})`;

function message({ input, begins }) {
  const bare = !input.files.length && input.data === undefined;
  const parts = [
    ...(input.data === undefined ? [] : [`new_data_part(json.loads(${lit(JSON.stringify(input.data))}))`]),
    ...(input.text || bare ? [`Part(text=${lit(input.text)})`] : []),
    ...input.files.map(part),
  ];
  const ids = [["task_id", begins ? "" : input.task], ["context_id", input.context]].filter(([, id]) => id);
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
const one = (method, type) => ({ input }) => [`        print(await client.${method}(${type}(id=${lit(input.task)})))`];
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
    ...uses("json"),
    ...(dict.includes("os.environ") ? ["import os"] : []),
    ...uses("uuid"),
    "",
    "import httpx",
    "from a2a.client import ClientConfig, create_client",
    ...(lines.some((line) => line.includes("new_data_part(")) ? ["from a2a.helpers import new_data_part"] : []),
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
  const callArguments = [lit(sent.method), lit(sent.url), "headers=HEADERS", ...(sent.text ? ["content=BODY.encode()"] : []), "timeout=60"].join(", ");
  const reading = sent.streams
    ? [`with httpx.stream(${callArguments}) as answer:`, "    for line in answer.iter_lines():", "        print(line)"]
    : [`print(httpx.request(${callArguments}).text)`];
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

/** The request as a module for Node, which needs no package. */
export function javascript(sent) {
  const secret = (value) => `${value.startsWith("Bearer ") ? '"Bearer " + ' : ""}process.env.${VARIABLE}`;
  const headers = headersOf(sent, secret).map(([name, value]) => `    ${lit(name)}: ${name === sent.secretHeader ? value : lit(value)},`);
  return [
    `const answer = await fetch(${lit(sent.url)}, {`,
    `  method: ${lit(sent.method)},`,
    "  headers: {",
    ...headers,
    "  },",
    ...(sent.text ? [`  body: JSON.stringify(${fresh(sent)}),`] : []),
    "});",
    ...(sent.streams
      ? ["for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) process.stdout.write(piece);"]
      : ["console.log(await answer.text());"]),
    "",
  ].join("\n");
}

/** Can it be input by gRPC? */
export const hasRpc = (sent) => rpcOf(sent.dialect, sent.operation, sent.input) !== null;

/** A command for gRPC, which browsers do not speak. `sent.grpc`: {agent, address, plain}; no address: gRPC is off. */
export function grpcurl(sent) {
  const { agent, address, plain } = sent.grpc;
  const { path, body } = rpcOf(sent.dialect, sent.operation, renew(sent));
  const metadata = [["a2a-agent", agent], ...headersOf(sent, shellSecret).filter(([name]) => name !== "Content-Type")];
  const line = ["grpcurl", ...(plain ? ["-plaintext"] : []), ...metadata.map(([name, value]) => inShell(sent, name, value))];
  const text = JSON.stringify(body);
  const where = [address || "HOST:PORT", path];
  if (text.length < LONGEST_LINE) return [...line, "-d", quoted(text), ...where].join(" ");
  return `${[...line, "-d", "@", ...where].join(" ")} <<'END'\n${text}\nEND`;
}
