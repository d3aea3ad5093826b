// What a page does with servers of another origin: ?use=ORIGIN is one that
// allows it, ?refused=ORIGIN one that does not. The test gets what came of it,
// {NAME: RESULT or "error: …"}, and judges it.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const query = new URLSearchParams(location.search);
const results = {};

async function attempt(name, run) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no answer in 10 s')), 10_000));
  try {
    results[name] = await Promise.race([run(), late]);
  } catch (err) {
    results[name] = `error: ${err.message}`;
  }
}

const text = result => result.content[0].text;

// sdk is the client of the TypeScript SDK v2.
async function sdk(transport, options) {
  const client = new Client({ name: 'page', version: '1.0.0' }, options);
  await client.connect(transport);
  const tools = (await client.listTools()).tools.map(tool => tool.name);
  const seen = [];
  const done = await client.callTool({ name: 'count', arguments: { to: 3 } }, { onprogress: p => seen.push(p.progress) });
  // At 2026-07-28 this SDK leaves out the header that the tool wants when it runs in a browser.
  const where = await client.callTool({ name: 'where', arguments: { region: 'Köln' } }).then(text, err => err.message);
  const session = transport.sessionId;
  const version = client.getNegotiatedProtocolVersion();
  if (session) await transport.terminateSession();
  await client.close();
  return { tools, seen, text: text(done), where, session: Boolean(session), version };
}

async function post(url, headers, message) {
  const accept = 'application/json, text/event-stream';
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', ...message })
  });
  const body = await response.text();
  const data = body.startsWith('{') || !body ? body : body.split('\n').findLast(line => line.startsWith('data: {')).slice(6);
  return { session: response.headers.get('mcp-session-id'), status: response.status, message: data && JSON.parse(data) };
}

const clientInfo = { name: 'page', version: '1.0.0' };

// legacy is 2025-11-25 with nothing but fetch.
async function legacy(url) {
  const version = { 'mcp-protocol-version': '2025-11-25' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  const opened = await post(url, {}, { id: 1, method: 'initialize', params });
  const headers = { ...version, 'mcp-session-id': opened.session };
  const told = await post(url, headers, { method: 'notifications/initialized' });
  const called = await post(url, headers, { id: 2, method: 'tools/call', params: { name: 'count', arguments: { to: 1 } } });
  const ended = await fetch(url, { method: 'DELETE', headers });
  return { session: Boolean(opened.session), told: told.status, text: text(called.message.result), ended: ended.status };
}

// modern is 2026-07-28 with nothing but fetch.
async function modern(url) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': clientInfo,
    'io.modelcontextprotocol/clientCapabilities': {}
  };
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'where', 'mcp-param-region': 'north' };
  const called = await post(url, headers, { id: 1, method: 'tools/call', params: { name: 'where', arguments: { region: 'north' }, _meta } });
  return { status: called.status, text: text(called.message.result) };
}

const use = query.get('use');
if (use) {
  await attempt('sdk legacy', () => sdk(new StreamableHTTPClientTransport(new URL('/mcp', use)), {}));
  await attempt('sdk modern', () => sdk(new StreamableHTTPClientTransport(new URL('/mcp', use)), { versionNegotiation: { mode: { pin: '2026-07-28' } } }));
  await attempt('sdk sse', () => sdk(new SSEClientTransport(new URL('/sse', use)), {}));
  await attempt('fetch legacy', () => legacy(new URL('/mcp', use)));
  await attempt('fetch modern', () => modern(new URL('/mcp', use)));
}
const refused = query.get('refused');
if (refused) {
  await attempt('refused legacy', () => legacy(new URL('/mcp', refused)));
  await attempt('refused modern', () => modern(new URL('/mcp', refused)));
  await attempt('refused sse', () => sdk(new SSEClientTransport(new URL('/sse', refused)), {}));
}
await fetch('/result', { method: 'POST', body: JSON.stringify(results) });
