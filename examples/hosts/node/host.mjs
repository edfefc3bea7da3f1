// An agent's host in Node, without packages: everything but the model. usage: node host.mjs [FOLDER WITH TOOLS]
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const ALLOWED = new Set(['game:player', 'units:convert']);
const PLAYER = {
  name: 'player',
  description: "Says how a player of the running game is: points of life, place. Input: the player's name.",
  agentCallable: true,
  parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
// The host's own service: a model calls it like any other tool.
const services = { game: { player: (args) => ({ name: args.name, hp: 7, place: 'harbour' }) } };

// What the daemon asks the host: may a call run, and run a method of a service.
const requests = {
  'tool/requestApproval': ({ tool, argsPreview, options }) => {
    const kind = ALLOWED.has(tool) ? 'allow_once' : 'reject_once';
    console.log(`asked: ${tool} ${argsPreview} -> ${kind}`);
    return { outcome: 'selected', optionId: options.find((option) => option.kind === kind).optionId };
  },
  'service/invoke': ({ serviceName, methodName, args }) => {
    const run = services[serviceName][methodName];
    return run(args);
  },
};

function startTamis(root) {
  const daemon = spawn(process.env.TAMIS ?? 'tamis', ['rpc', '--root', root], { stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  let number = 0;
  const send = (message) => daemon.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const answer = async ({ id, method, params }) => {
    try {
      const serve = requests[method];
      if (serve) send({ id, result: (await serve(params)) ?? null });
      else send({ id, error: { code: -32601, message: `this host does not answer ${method}` } });
    } catch (error) {
      send({ id, error: { code: -32603, message: error.message } });
    }
  };
  createInterface({ input: daemon.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method && message.id !== undefined) answer(message);
    else if (!message.method && waiting.has(message.id)) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(`${message.error.message} (${message.error.code})`));
      else resolve(message.result);
    }
  });
  const ended = new Promise((resolve) => daemon.on('close', resolve));
  ended.then((code) => waiting.forEach(({ reject }) => reject(new Error(`the daemon ended (exit code ${code})`))));
  daemon.on('error', (error) => waiting.forEach(({ reject }) => reject(error)));
  daemon.stdin.on('error', () => {}); // the daemon is gone: `close` says it
  return {
    call: (method, params = {}) =>
      new Promise((resolve, reject) => {
        waiting.set(++number, { resolve, reject });
        send({ id: number, method, params });
      }),
    end: () => {
      daemon.stdin.end(); // the end of its input ends the daemon
      return ended;
    },
  };
}

// Stands for a model: what it would say, turn by turn.
function scriptedModel() {
  const turns = [
    'I look first. <ACTION><game:player><name>Ada</name></game:player></ACTION>',
    '<ACTION><units:convert><value>26.2</value><from_unit>mi</from_unit><to_unit>km</to_unit></units:convert></ACTION>',
    '<ACTION><text:statistics><text>A secret.</text></text:statistics></ACTION>',
    'Ada has 7 points, and it is 42.1648 km.',
  ];
  return (_messages) => turns.shift();
}

const model = scriptedModel();
const tamis = startTamis(process.argv[2] ?? '.');
await tamis.call('initialize', {
  processId: process.pid,
  capabilities: { experimental: { tamis: { approval: 'request' } } },
});
await tamis.call('service/register', { serviceName: 'game', methods: [PLAYER] });
const { tools } = await tamis.call('tool/list', { filter: { callable: true } });
const usable = new Set(tools.filter((tool) => tool.available).map((tool) => tool.toolId));
console.log(`tools: ${usable.has('game:player')} ${usable.has('units:convert')}`);
const toolIds = ['game:player', 'units:convert', 'text:statistics'];
const prompt = await tamis.call('prompt/generate', { protocol: 'action', toolIds });
const messages = [prompt.text, 'How is Ada, and how long is a marathon?'];
const config = { enabled: true, protocol: 'action', requireConfirmation: true };
for (;;) {
  const text = model(messages);
  const step = await tamis.call('agent/step', { text, sessionId: 'session-1', config });
  console.log(`model: ${step.responseText}`);
  if (step.stop) break; // noTools: that was the answer; the others end a loop that goes nowhere
  console.log(step.observation);
  messages.push(text, step.observation);
}
await tamis.call('agent/end', { sessionId: 'session-1' });
console.log(`ended: ${await tamis.end()}`);
