// Peer: @a2a-js/sdk on express with its Kysely store on PostgreSQL. `a2a_js_server.mjs PORT`, env DB and JS_HOME.
// The agent emits the least the API allows: Task(WORKING), the artifact, COMPLETED.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { randomUUID } from 'node:crypto';
// the packages live in $JS_HOME/node_modules, outside this tree
const req = createRequire(process.env.JS_HOME + '/package.json');
const load = (name) => import(pathToFileURL(req.resolve(name)));
const { Task, TaskStatusUpdateEvent, TaskArtifactUpdateEvent, AgentCard, Message } = await load('@a2a-js/sdk');
const { AgentEvent, DefaultRequestHandler } = await load('@a2a-js/sdk/server');
const { jsonRpcHandler, agentCardHandler, UserBuilder } = await load('@a2a-js/sdk/server/express');
const { DatabaseTaskStore } = await load('@a2a-js/sdk/server/database');
const { Kysely, PostgresDialect } = await load('kysely');
const pg = (await load('pg')).default;
const express = (await load('express')).default;

const port = Number(process.argv[2]);
const sleep = (s) => new Promise((r) => setTimeout(r, s * 1000));
console.info = () => {};

class Agent {
  async execute(ctx, bus) {
    const { taskId, contextId, userMessage } = ctx;
    const [verb, ...rest] = userMessage.parts[0].content.value.split(' ');
    const arg = rest.join(' ');
    if (verb === 'message') {
      bus.publish(AgentEvent.message(Message.fromJSON(
        { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text: arg }], contextId })));
      bus.finished();
      return;
    }
    const status = (state) => ({ state, timestamp: new Date().toISOString() });
    const artifact = (text, append, lastChunk) => bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(
      { taskId, contextId, artifact: { artifactId: 'a1', parts: [{ text }] }, append, lastChunk })));
    const task = Task.fromJSON({ id: taskId, contextId, status: status('TASK_STATE_WORKING') });
    bus.publish(AgentEvent.task({ ...task, history: [userMessage] }));
    if (verb === 'chunks') {
      const [n, delay] = rest.map(Number);
      await sleep(delay || 0);
      for (let i = 0; i < n; i++) {
        artifact(`#${i};`.padEnd(32, '.'), i > 0, i === n - 1);
        if (i % 64 === 63) await new Promise(setImmediate); // let the event loop breathe
      }
    } else {
      if (verb === 'sleep') await sleep(Number(arg));
      artifact(arg, false, true);
    }
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(
      { taskId, contextId, status: status('TASK_STATE_COMPLETED') })));
    bus.finished();
  }
  async cancelTask() {}
}

const pool = new pg.Pool({ connectionString: process.env.DB, max: 32 });
const store = new DatabaseTaskStore(new Kysely({ dialect: new PostgresDialect({ pool }) })); // schema: `a2a-db upgrade`
const card = AgentCard.fromJSON({
  name: 'peer', description: 'bench peer', version: '1',
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
  skills: [{ id: 's', name: 's', description: 's', tags: ['s'] }],
  supportedInterfaces: [{ protocolBinding: 'JSONRPC', protocolVersion: '1.0', url: `http://127.0.0.1:${port}/` }],
});
const handler = new DefaultRequestHandler(card, store, new Agent());
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }));
app.use(jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1', 2048);
