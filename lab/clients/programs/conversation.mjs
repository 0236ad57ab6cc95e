// The conversation that every JavaScript client has with the host, told as one line of JSON a check: the checks that the
// variable CHECKS names, over each of BINDINGS; those of silence at once.
// A client is an adapter, `connect(binding)`, which speaks of tasks, messages, events and errors in the words below.
//
//   task      {kind: "task", id, contextId, state, said, artifacts: [text], parts: [part], history: [text]}
//   message   {kind: "message", said}
//   event     a task, a message, {kind: "status", state} or {kind: "artifact", text, append, last}
//   part      {text} or {bytes, name, type} or {url, name, type} or {data}
//   error     a code of JSON-RPC, also over HTTP+JSON; 0 if the client hides it
//
// `rough`: over HTTP+JSON and gRPC of 0.3 these clients lose the `append` of chunks and the names of files, and know nothing of
// the second base64 that the SDKs in Python, and so the host, put around bytes.
import process from "node:process";

const PATIENCE = 30_000;
const BEGUN = ["submitted", "working"];
const { BINDINGS, CHECKS: ASKED } = process.env;
export const CODES = { notFound: -32001, notCancelable: -32002, unsupported: -32004, badParams: -32602 };

// What gRPC's client needs for the URL in a card: it takes an address without a scheme, and is told of TLS.
export function channelOf(cardUrl, require) {
  const { credentials } = require("@grpc/grpc-js");
  const { protocol, host } = new URL(cardUrl);
  const safe = protocol === "https:";
  const grpcChannelCredentials = safe ? credentials.createSsl() : credentials.createInsecure();
  return { url: host, grpcChannelCredentials };
}

export function word() {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 12);
}

function same(found, wanted, what) {
  const [left, right] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (left !== right) throw new Error(`${what}: ${left} instead of ${right}`);
}

function oneOf(found, wanted, what) {
  if (!wanted.includes(found)) throw new Error(`${what}: ${found} is none of ${wanted}`);
}

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

function lastState(events) {
  return events.filter((event) => event.state).at(-1)?.state;
}

async function fails(peer, promise, ...codes) {
  let found;
  try {
    found = await promise;
  } catch (error) {
    const code = peer.code(error);
    if (!codes.includes(code)) throw new Error(`code ${code} instead of ${codes}: ${error}`);
    return;
  }
  throw new Error(`no error, but ${JSON.stringify(found)}`);
}

async function until(peer, id, state) {
  for (;;) {
    const task = await peer.get(id);
    if (task.state === state) return task;
    oneOf(task.state, BEGUN, `state on the way to ${state}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const CHECKS = {
  async card_names_the_dialect(peer) {
    same([peer.version, peer.url], [peer.wanted.version, peer.wanted.url], "interface");
  },
  async blocking_send(peer) {
    const text = word();
    const task = await peer.send(`echo ${text}`);
    same([task.kind, task.state, task.artifacts], ["task", "completed", [text]], "answer");
    same(await peer.get(task.id), task, "the task got afterwards");
  },
  async send_at_once_and_poll(peer) {
    const task = await peer.send("slow 2", { blocking: false });
    oneOf(task.state, BEGUN, "state at once");
    same((await until(peer, task.id, "completed")).artifacts, ["Slept 2 s"], "artifacts");
  },
  async stream_of_chunks(peer) {
    const events = await all(peer.stream("chunks 20"));
    same(events[0].kind, "task", "first event");
    const chunks = events.filter((event) => event.kind === "artifact");
    if (!peer.rough) {
      same(chunks.map((chunk) => chunk.append), [false, ...Array(19).fill(true)], "append");
    }
    same(chunks.map((chunk) => chunk.last), [...Array(19).fill(false), true], "last chunk");
    same([events.at(-1).kind, lastState(events)], ["status", "completed"], "last event");
    const whole = chunks.map((chunk) => chunk.text).join("");
    same((await peer.get(events[0].id)).artifacts, [whole], "the stored artifact");
  },
  async silent_send(peer) {
    same((await peer.send("sleep 8")).artifacts, ["Slept 8 s"], "artifacts");
  },
  async silent_stream(peer) {
    same(lastState(await all(peer.stream("sleep 8"))), "completed", "end of the stream");
  },
  async history_length(peer) {
    const asked = await peer.send("ask Who?");
    await peer.send("Ada", { taskId: asked.id });
    const { history } = await peer.get(asked.id);
    same([history[0], history.at(-1)], ["ask Who?", "Ada"], "ends of the history");
    same((await peer.get(asked.id, 1)).history, ["Ada"], "the newest message");
  },
  async input_required_and_reply(peer) {
    const asked = await peer.send("ask Who?");
    same([asked.state, asked.said], ["input-required", "Who?"], "question");
    const text = word();
    const done = await peer.send(text, { taskId: asked.id, contextId: asked.contextId });
    same([done.id, done.contextId, done.state], [asked.id, asked.contextId, "completed"], "reply");
    same(done.artifacts, [text], "artifacts");
  },
  async relayed_question(peer) {
    const asked = await peer.send("call ask Who?");
    same([asked.state, asked.said], ["input-required", "Who?"], "question");
    const text = word();
    const done = await peer.send(text, { taskId: asked.id, contextId: asked.contextId });
    same([done.id, done.state, done.artifacts], [asked.id, "completed", [text]], "answer");
  },
  async streamed_question_and_reply(peer) {
    const events = await all(peer.stream("ask Who?"));
    same(lastState(events), "input-required", "end of the first stream");
    const more = await all(peer.stream("Ada", { taskId: events[0].id }));
    same([more[0].kind, more[0].id], ["task", events[0].id], "first event of the second stream");
    same(lastState(more), "completed", "end of the second stream");
  },
  async cancel_running(peer) {
    const task = await peer.send("slow 60", { blocking: false });
    same((await peer.cancel(task.id)).state, "canceled", "state");
    same((await peer.get(task.id)).state, "canceled", "state got afterwards");
  },
  async resubscribe_running(peer) {
    const task = await peer.send("slow 60", { blocking: false });
    const events = [];
    for await (const event of peer.resubscribe(task.id)) {
      if (!events.length) await peer.cancel(task.id);
      events.push(event);
    }
    same([events[0].kind, events[0].id], ["task", task.id], "first event");
    oneOf(events[0].state, BEGUN, "first state");
    same(lastState(events), "canceled", "end");
  },
  async dropped_stream_taken_up(peer) {
    let id;
    for await (const event of peer.stream("slow 60")) {
      id = event.id;
      break;
    }
    oneOf((await peer.get(id)).state, BEGUN, "state after the stream was dropped");
    for await (const event of peer.resubscribe(id)) {
      oneOf(event.state, BEGUN, "first state");
      break;
    }
    same((await peer.cancel(id)).state, "canceled", "state");
  },
  async direct_message(peer) {
    const hello = { kind: "message", said: "hello" };
    same(await peer.send("message hello"), hello, "answer");
    same(await all(peer.stream("message hello")), [hello], "stream");
  },
  async failed_task(peer) {
    const task = await peer.send("fail boom");
    same([task.state, task.said], ["failed", "boom"], "answer");
    same(lastState(await all(peer.stream("fail boom"))), "failed", "end of the stream");
  },
  async rejected_task(peer) {
    const task = await peer.send("reject boom");
    same([task.state, task.said], ["rejected", "boom"], "answer");
  },
  async files_and_data(peer) {
    const { parts } = await peer.send("file some bytes");
    const url = "https://example.com/demo.txt";
    const about = { name: "demo.txt", type: "text/plain" };
    if (peer.rough) {
      same([atob(parts[0].bytes), parts[1].url], ["some bytes", url], "file and link");
    } else {
      same(parts, [{ bytes: "some bytes", ...about }, { url, ...about }], "file and link");
    }
    const data = (await peer.send("data word")).parts;
    same(data, [{ data: { length: 4, said: "word" } }], "data");
  },
  async unknown_task(peer) {
    const id = `no-${word()}`;
    await fails(peer, peer.get(id), CODES.notFound);
    await fails(peer, peer.cancel(id), CODES.notFound);
    await fails(peer, peer.send("echo x", { taskId: id }), CODES.notFound);
  },
  async resubscribe_to_unknown_task(peer) {
    await fails(peer, all(peer.resubscribe(`no-${word()}`)), CODES.notFound, 0);
  },
  async cancel_of_ended_task(peer) {
    const task = await peer.send("echo x");
    await fails(peer, peer.cancel(task.id), CODES.notCancelable);
  },
  async message_to_ended_task(peer) {
    const task = await peer.send("echo x");
    await fails(peer, peer.send("echo y", { taskId: task.id }), peer.wanted.ended);
    same((await peer.get(task.id)).artifacts, ["x"], "the ended task");
  },
  async extended_card(peer) {
    same((await peer.extendedCard()).name, "Demo", "the card, where there is no other");
  },
};

async function within(promise) {
  const late = Promise.withResolvers?.() ?? {};
  late.promise ??= new Promise((_, reject) => (late.reject = reject));
  const timer = setTimeout(() => late.reject(new Error(`no end within ${PATIENCE} ms`)), PATIENCE);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function tell(binding, check, why) {
  process.stdout.write(`${JSON.stringify({ binding, check, why })}\n`);
}

async function outcome(action) {
  try {
    await within(action());
    return "";
  } catch (error) {
    return String(error?.stack ?? error);
  }
}

async function ask(connect, binding, name) {
  tell(binding, name, await outcome(async () => CHECKS[name](await connect(binding))));
}

export async function converse(connect) {
  const found = BINDINGS.split(",").flatMap((binding) => ASKED.split(",").map((name) => [binding, name]));
  const isSilent = ([, name]) => name.startsWith("silent_");
  for (const each of found) if (!isSilent(each)) await ask(connect, ...each);
  await Promise.all(found.filter(isSilent).map((each) => ask(connect, ...each)));
  process.exit(0);
}
