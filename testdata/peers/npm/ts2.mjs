// A client of the TypeScript SDK v2: node ts2.mjs VERSION COMMAND ARGS…
// VERSION is a revision to hold it to, or "auto" to let it find out.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answers, scenario } from './scenario.mjs';

const [, , version, command, ...args] = process.argv;
const options = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } };
if (version === 'auto') {
  options.versionNegotiation = { mode: 'auto' };
} else if (version >= '2026') {
  options.versionNegotiation = { mode: { pin: version } };
} else {
  options.supportedProtocolVersions = [version];
}
const client = new Client({ name: 'ts2', version: '1.0.0' }, options);
client.setRequestHandler('elicitation/create', request => answers.elicit(request.params));
client.setRequestHandler('sampling/createMessage', request => answers.sample(request.params));
client.setRequestHandler('roots/list', () => answers.roots());

await scenario(
  client,
  async () => {
    await client.connect(new StdioClientTransport({ command, args }));
    return { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion()?.name };
  },
  (name, args, options) => client.callTool({ name, arguments: args }, options)
);
