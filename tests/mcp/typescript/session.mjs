// One session of the official TypeScript SDK's client with a server: session.mjs v1|v2 WHERE, where WHERE is JSON,
// {"command", "args"} or {"url", "token"}. Prints what came as one JSON object.
const [line, where] = [process.argv[2], JSON.parse(process.argv[3])];
const sdk = "@modelcontextprotocol/sdk";
const v1 = line === "v1";
const { Client } = await import(v1 ? `${sdk}/client/index.js` : "@modelcontextprotocol/client");
const { StdioClientTransport } = await import(v1 ? `${sdk}/client/stdio.js` : "@modelcontextprotocol/client/stdio");
const { StreamableHTTPClientTransport } = await import(
  v1 ? `${sdk}/client/streamableHttp.js` : "@modelcontextprotocol/client"
);
const form = v1 ? (await import(`${sdk}/types.js`)).ElicitRequestSchema : "elicitation/create";

const options = { capabilities: { elicitation: {} } };
const client = new Client({ name: "test", version: "1" }, v1 ? options : { ...options, versionNegotiation: { mode: "auto" } });
const asked = [];
client.setRequestHandler(form, async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: "allow_once" } };
});
const transport = where.url
  ? new StreamableHTTPClientTransport(new URL(where.url), {
      requestInit: { headers: { Authorization: `Bearer ${where.token}` } },
    })
  : new StdioClientTransport({ ...where, stderr: "ignore" });
await client.connect(transport);

const told = [];
const call = (name, args, more) =>
  v1 ? client.callTool({ name, arguments: args }, undefined, more) : client.callTool({ name, arguments: args }, more);
const { tools } = await client.listTools();
const echoed = await call("core_echo", { text: "x" });
const wrong = await call("core_echo", { txt: "x" });
// A client that gets no turn meanwhile reads progress and answer in one piece, and drops the progress: then the tool takes longer.
for (const seconds of [0.2, 2, 8]) {
  if (told.length < 2) {
    told.length = 0;
    await call("core_slow", { seconds }, { onprogress: (step) => told.push(step.progress) });
  }
}
const approved = await call("core_asks", { text: "y" });
const unknown = await call("no_such", {}).then(() => 0, (error) => error.code);
const { prompts } = await client.listPrompts();
const { resources } = await client.listResources();
const read = await client.readResource({ uri: resources[0].uri });
const version = v1 ? transport.protocolVersion : client.getNegotiatedProtocolVersion?.();
console.log(
  JSON.stringify({
    version,
    tools: tools.map((tool) => tool.name),
    echoed: echoed.structuredContent,
    wrong: [wrong.isError, wrong.content[0].text],
    told,
    approved: approved.structuredContent,
    asked,
    unknown,
    prompts: prompts.map((prompt) => prompt.name),
    read: JSON.parse(read.contents[0].text).toolId,
  }),
);
await client.close();
