// The tools, resources and prompts of the demo server once more, on the
// TypeScript SDK v2: a server that nobody here wrote, for our client. It serves
// stdio, or HTTP if the environment has a PORT: with sessions for clients before
// 2026-07-28, unless it is given -stateless.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import {
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  inputResponse,
  isLegacyRequest
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const object = (properties, required = []) => fromJsonSchema({ type: 'object', properties, required });
const string = { type: 'string' };
const number = { type: 'number' };
const say = text => ({ content: [{ type: 'text', text }] });
const pause = ms => new Promise(done => setTimeout(done, ms));

// ask answers with what the client gave under key, and until then asks for it.
const ask = (context, key, request, answer) => {
  const view = inputResponse(context.mcpReq.inputResponses, key);
  return view.kind === 'missing' ? inputRequired({ inputRequests: { [key]: request } }) : say(answer(view));
};

const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };

// Over HTTP each request of 2026-07-28 has a server of its own: what they share.
let modern;
let haveBonus = false;

function build() {
  const server = new McpServer({ name: 'foreign', version: '1.0.0' }, { capabilities });
  server.server.setRequestHandler('completion/complete', ({ params }) => ({
    completion: { values: ['formal', 'friendly', 'short'].filter(style => style.startsWith(params.argument.value)) }
  }));
  const watched = new Set(); // by a client that is not modern
  server.server.setRequestHandler('resources/subscribe', ({ params }) => (watched.add(params.uri), {}));
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (watched.delete(params.uri), {}));
  server.registerTool('echo', { inputSchema: object({ text: string }) }, ({ text }) => say(text));
  server.registerTool('add', { inputSchema: object({ a: number, b: number }), outputSchema: object({ sum: number }) }, ({ a, b }) => ({
    ...say(JSON.stringify({ sum: a + b })),
    structuredContent: { sum: a + b }
  }));
  server.registerTool('fail', {}, () => ({ ...say('failed on purpose'), isError: true }));
  server.registerTool('countdown', { inputSchema: object({ from: number, delayMs: number }) }, async ({ from, delayMs }, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= from; progress++) {
      await pause(delayMs);
      await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: from } });
    }
    return say('liftoff');
  });
  server.registerTool('log', { inputSchema: object({ level: string, message: string }) }, async ({ level, message }, context) => {
    await context.mcpReq.log(level, message);
    return say('logged');
  });
  server.registerTool('touch', {}, async () => {
    if (modern) modern.notify.resourceUpdated('demo://readme');
    await server.server.sendResourceUpdated({ uri: 'demo://readme' }).catch(() => {}); // of no use to 2026-07-28 over HTTP
    return say('touched');
  });
  const bonus = server.registerTool('bonus-tool', {}, () => say('a bonus'));
  if (!haveBonus) bonus.disable();
  server.registerTool('bonus', { inputSchema: object({ have: { type: 'boolean' } }) }, ({ have }) => {
    haveBonus = have;
    if (have) bonus.enable();
    else bonus.disable();
    if (modern) modern.notify.toolsChanged();
    return say('done');
  });
  server.registerTool('wait', {}, context => new Promise((_, stop) => context.mcpReq.signal.addEventListener('abort', () => stop(new Error('aborted')))));
  server.registerTool('ask', { inputSchema: object({ question: string }) }, ({ question }, context) => {
    const requestedSchema = { type: 'object', properties: { name: string, agree: { type: 'boolean' } }, required: ['name'] };
    return ask(context, 'who', inputRequired.elicit({ message: question, requestedSchema }), view => `${view.action} ${JSON.stringify(view.content)}`);
  });
  server.registerTool('pay', {}, context =>
    ask(context, 'page', inputRequired.elicitUrl({ message: 'Pay here', url: 'https://pay.example/7' }), view => view.action)
  );
  server.registerTool('sample', { inputSchema: object({ prompt: string }) }, ({ prompt }, context) => {
    const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
    return ask(context, 'say', inputRequired.createMessage({ messages, maxTokens: 50 }), view => [view.result.content].flat()[0].text);
  });
  server.registerTool('roots', {}, context => ask(context, 'where', inputRequired.listRoots(), view => view.roots.map(r => r.uri).join('\n')));
  server.registerResource('readme', 'demo://readme', {}, uri => ({ contents: [{ uri: uri.href, text: 'Read me.' }] }));
  server.registerResource('logo', 'demo://logo', {}, uri => ({
    contents: [{ uri: uri.href, mimeType: 'image/png', blob: Buffer.from('89504e470d0a1a0a', 'hex').toString('base64') }]
  }));
  server.registerResource('user', new ResourceTemplate('demo://users/{id}/profile', { list: undefined }), {}, (uri, { id }) => ({
    contents: [{ uri: uri.href, text: `user ${id}` }]
  }));
  server.registerPrompt('greet', { argsSchema: object({ name: string }, ['name']) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}` } }]
  }));
  server.registerPrompt('review', {}, () => ({
    messages: [{ role: 'user', content: { type: 'resource', resource: { uri: 'demo://readme', text: 'Read me.' } } }]
  }));
  return server;
}

// A memory of what was sent, for streams that break.
function memory() {
  const events = [];
  return {
    storeEvent: async (stream, message) => {
      events.push({ stream, message });
      return `${stream}/${events.length}`;
    },
    replayEventsAfter: async (last, { send }) => {
      const stream = last.slice(0, last.lastIndexOf('/'));
      for (let i = Number(last.slice(stream.length + 1)); i < events.length; i++) {
        if (events[i].stream === stream && events[i].message.jsonrpc) await send(`${stream}/${i + 1}`, events[i].message);
      }
      return stream;
    }
  };
}

const sessions = new Map();

async function legacy(request) {
  const id = request.headers.get('mcp-session-id');
  if (id) return sessions.get(id)?.handleRequest(request) ?? new Response('no such session', { status: 404 });
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: memory(),
    retryInterval: 20,
    onsessioninitialized: id => void sessions.set(id, transport),
    onsessionclosed: id => void sessions.delete(id)
  });
  await build().connect(transport);
  return transport.handleRequest(request);
}

// serveHTTP lends Node's server the requests and responses of the web.
function serveHTTP(fetch) {
  createServer(async (req, res) => {
    const stop = new AbortController();
    res.on('close', () => stop.abort());
    const body = ['GET', 'HEAD'].includes(req.method) ? undefined : Readable.toWeb(req);
    const init = { method: req.method, headers: req.headers, body, duplex: 'half', signal: stop.signal };
    const response = await fetch(new Request(`http://${req.headers.host}${req.url}`, init));
    res.writeHead(response.status, Object.fromEntries(response.headers));
    if (!response.body) return res.end();
    res.flushHeaders();
    Readable.fromWeb(response.body)
      .on('error', () => res.destroy())
      .pipe(res)
      .on('close', () => response.body.locked || response.body.cancel());
  }).listen(Number(process.env.PORT), '127.0.0.1');
}

if (!process.env.PORT) {
  serveStdio(build);
} else if (process.argv.includes('-stateless')) {
  modern = createMcpHandler(build);
  serveHTTP(modern.fetch);
} else {
  modern = createMcpHandler(build, { legacy: 'reject' });
  serveHTTP(async request => ((await isLegacyRequest(request)) ? legacy(request) : modern.fetch(request)));
}
