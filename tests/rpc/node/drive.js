// Drives `tamis rpc` with vscode-jsonrpc. usage: node drive.js PYTHON ROOT; prints one JSON document.
const { spawn } = require('child_process');
const { createMessageConnection, StreamMessageReader, StreamMessageWriter, CancellationTokenSource } = require('vscode-jsonrpc/node');

async function main() {
  const [python, root] = process.argv.slice(2);
  const daemon = spawn(python, ['-m', 'tamis.server.cli.main', 'rpc', '--root', root], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => daemon.on('exit', (code) => resolve(code)));
  const connection = createMessageConnection(new StreamMessageReader(daemon.stdout), new StreamMessageWriter(daemon.stdin));
  const output = [];
  connection.onNotification('tool/output', (params) => output.push(params));
  connection.onRequest('tool/requestApproval', (params) => ({ outcome: 'selected', optionId: params.options[0].optionId }));
  connection.listen();
  const report = {};
  report.initialize = await connection.sendRequest('initialize', {
    processId: process.pid,
    capabilities: { general: { positionEncodings: ['utf-16'] }, experimental: { tamis: { approval: 'request', output: true } } },
  });
  report.list = await connection.sendRequest('tool/list', {});
  report.parse = await connection.sendRequest('tool/parse', { text: '😀 <ACTION><test:echo><text>你好</text></test:echo></ACTION>' });
  report.execute = await connection.sendRequest('tool/execute', { toolId: 'test:echo', args: { text: '你好 😀' } });
  report.text = await connection.sendRequest('tool/executeText', { text: '<<<[TOOL_REQUEST]>>>\ntool_name:「始」test:echo「末」,\ntext:「始」x「末」\n<<<[END_TOOL_REQUEST]>>>' });
  const source = new CancellationTokenSource();
  const hanging = connection.sendRequest('tool/execute', { toolId: 'test:hang', args: {} }, source.token);
  setTimeout(() => source.cancel(), 300);
  report.cancelled = await hanging;
  report.unknown = await connection.sendRequest('no/such', {}).catch((error) => ({ code: error.code, message: error.message }));
  report.output = output;
  await connection.sendRequest('shutdown');
  connection.sendNotification('exit');
  report.exitCode = await ended;
  process.stdout.write(JSON.stringify(report));
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
