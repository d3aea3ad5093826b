// A client of the TypeScript SDK v1: node ts1.mjs CONVERSATION VERSION (COMMAND ARGS… | URL)
// It always asks for its own newest revision, 2025-11-25; VERSION is ignored.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { answers, open, scenario } from './scenario.mjs';

const [, , conversation, , command, ...args] = process.argv;
const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const client = new Client({ name: 'ts1', version: '1.0.0' }, { capabilities });
client.setRequestHandler(types.ElicitRequestSchema, request => answers.elicit(request.params));
client.setRequestHandler(types.CreateMessageRequestSchema, request => answers.sample(request.params));
client.setRequestHandler(types.ListRootsRequestSchema, () => answers.roots());

const transport = open([command, ...args], StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport);
let version = null;
const told = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = v => told?.((version = v)) ?? (version = v); // how this SDK tells a transport what was agreed

const notices = {
  'notifications/message': types.LoggingMessageNotificationSchema,
  'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
  'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
  'notifications/prompts/list_changed': types.PromptListChangedNotificationSchema,
  'notifications/resources/list_changed': types.ResourceListChangedNotificationSchema
};

await scenario(
  client,
  {
    connect: async () => {
      await client.connect(transport);
      return { version, server: client.getServerVersion()?.name };
    },
    call: (name, args, options) => client.callTool({ name, arguments: args }, types.CallToolResultSchema, options),
    on: (method, heard) => client.setNotificationHandler(notices[method], n => heard(n.params)),
    level: level => client.setLoggingLevel(level),
    listen: async ({ resourceSubscriptions: uris = [] }) => {
      for (const uri of uris) await client.subscribeResource({ uri });
      return async () => {
        for (const uri of uris) await client.unsubscribeResource({ uri });
      };
    }
  },
  conversation
);
