// A client of the TypeScript SDK v2: node ts2.mjs CONVERSATION VERSION (COMMAND ARGS… | URL)
// VERSION is a revision to hold it to, or "auto" to let it find out.
import { Client, LOG_LEVEL_META_KEY, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { answers, open, scenario } from './scenario.mjs';

const [, , conversation, version, command, ...args] = process.argv;
const options = { capabilities: { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} } };
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

const transport = open([command, ...args], StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport);
const modern = () => client.getNegotiatedProtocolVersion() >= '2026';
let _meta; // of every call

await scenario(
  client,
  {
    connect: async () => {
      await client.connect(transport);
      return { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion()?.name };
    },
    call: (name, args, options) => client.callTool({ name, arguments: args, _meta }, options),
    on: (method, heard) => client.setNotificationHandler(method, n => heard(n.params)),
    level: async level => {
      if (modern()) _meta = { [LOG_LEVEL_META_KEY]: level };
      else await client.setLoggingLevel(level);
    },
    listen: async filter => {
      if (modern()) {
        const subscription = await client.listen(filter);
        return () => subscription.close();
      }
      const uris = filter.resourceSubscriptions ?? [];
      for (const uri of uris) await client.subscribeResource({ uri });
      return async () => {
        for (const uri of uris) await client.unsubscribeResource({ uri });
      };
    }
  },
  conversation
);
