// A client of the TypeScript SDK v1: node ts1.mjs VERSION COMMAND ARGS…
// It always asks for its own newest revision, 2025-11-25; VERSION is ignored.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { answers, scenario } from './scenario.mjs';

const [, , , command, ...args] = process.argv;
const client = new Client({ name: 'ts1', version: '1.0.0' }, { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } });
client.setRequestHandler(ElicitRequestSchema, request => answers.elicit(request.params));
client.setRequestHandler(CreateMessageRequestSchema, request => answers.sample(request.params));
client.setRequestHandler(ListRootsRequestSchema, () => answers.roots());

const transport = new StdioClientTransport({ command, args });
let version = null;
transport.setProtocolVersion = v => (version = v); // how this SDK tells a transport what was agreed

await scenario(
  client,
  async () => {
    await client.connect(transport);
    return { version, server: client.getServerVersion()?.name };
  },
  (name, args, options) => client.callTool({ name, arguments: args }, CallToolResultSchema, options)
);
