// The smallest MCP server there can be, for Node: one tool, no packages.
const add = {
  name: "add",
  description: "Adds two numbers, in JavaScript.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
};

const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "add.js", version: process.version },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [add] }),
  "tools/call": ({ arguments: { a, b } }) => ({ content: [{ type: "text", text: String(a + b) }] }),
};

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const outcome = answer
    ? { result: answer(params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }) + "\n");
});
