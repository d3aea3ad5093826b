// Conversations with servers of ours, for any TypeScript client: every step
// prints one JSON line, {"step":…,"ok":…,"detail":…}, and the program exits
// with 1 if a step failed. peers_test.go judges the details.

export const answers = {
  elicit: params => {
    if (params.mode === 'url') {
      asked.url = { message: params.message, url: params.url };
      return { action: 'accept' };
    }
    const fields = Object.keys(params.requestedSchema.properties);
    if (!fields.includes('name')) return { action: 'accept', content: Object.fromEntries(fields.map(f => [f, `any ${f}`])) };
    asked.elicit = { message: params.message, fields: fields.sort() };
    return { action: 'accept', content: { agree: true, name: 'Ada' } };
  },
  sample: params => {
    const { text: prompt, type, content } = first(params.messages.at(-1).content);
    const answer = { role: 'assistant', model: 'peer-model' };
    if (type === 'tool_result') return { ...answer, stopReason: 'endTurn', content: { type: 'text', text: `it is ${content[0].text}` } };
    if (params.tools) {
      const use = { type: 'tool_use', id: 'use-1', name: params.tools[0].name, input: { a: 2, b: 40 } };
      return { ...answer, stopReason: 'toolUse', content: [use] };
    }
    return { ...answer, stopReason: 'endTurn', content: { type: 'text', text: `model heard: ${prompt}` } };
  },
  roots: () => ({ roots: [{ uri: 'file:///peer/one', name: 'one' }, { uri: 'file:///peer/two' }] })
};

// What the server asked, kept until the step prints it.
const asked = {};

// A sampling message may hold one block or an array of them (2025-11-25 on).
const first = content => [content].flat()[0];
const text = result => first(result.content).text;

let failures = 0;

async function step(name, run) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no answer in 10 s')), 10_000).unref());
  let line;
  try {
    line = { step: name, ok: true, detail: await Promise.race([run(), late]) };
  } catch (err) {
    failures++;
    line = { step: name, ok: false, detail: `${err.name}: ${err.message}` };
  }
  console.log(JSON.stringify(line));
}

// until waits for what a notice brings.
async function until(done) {
  for (let i = 0; i < 300 && !done(); i++) await new Promise(wait => setTimeout(wait, 10));
}

// open makes the transport to a command or to a URL; one that ends in /sse is
// HTTP+SSE.
export function open([command, ...args], Stdio, StreamableHTTP, SSE) {
  if (!command.startsWith('http')) return new Stdio({ command, args });
  if (command.endsWith('/sse')) return new SSE(new URL(command));
  return new StreamableHTTP(new URL(command), {
    reconnectionOptions: { initialReconnectionDelay: 20, maxReconnectionDelay: 500, reconnectionDelayGrowFactor: 2, maxRetries: 5 }
  });
}

// sdk is what differs between the SDKs:
//   connect()                 opens the connection, answers the revision it settled on
//   call(name, args, options) calls a tool
//   on(method, heard)         has heard called with the params of a notification
//   level(level)              asks for log messages from there on
//   listen(filter)            asks for changes, answers a function that ends it
// and name is the conversation.
export async function scenario(client, sdk, name) {
  await step('connect', sdk.connect);
  await { demo, wide, nap, cut, lost }[name](client, sdk);
  await step('close', async () => {
    if (client.transport?.sessionId && name !== 'lost') await client.transport.terminateSession();
    await client.close();
    return null;
  });
  process.exit(failures ? 1 : 0);
}

// demo is the conversation with mcp demo.
async function demo(client, { call, on, level, listen }) {
  await step('list', async () => ({
    tools: (await client.listTools()).tools.map(t => t.name).sort(),
    resources: (await client.listResources()).resources.map(r => r.uri).sort(),
    templates: (await client.listResourceTemplates()).resourceTemplates.map(t => t.uriTemplate).sort(),
    prompts: (await client.listPrompts()).prompts.map(p => p.name).sort()
  }));
  await step('call', async () => {
    const sum = await call('add', { a: 2, b: 40 });
    return {
      echo: text(await call('echo', { text: 'Grüße <b>&</b> 世界 \u2028' })),
      sum: text(sum),
      structured: sum.structuredContent ?? null,
      failed: (await call('fail', {})).isError === true,
      panic: await call('panic', {}).then(() => 'no error', err => err.code)
    };
  });
  await step('read', async () => {
    const read = async uri => (await client.readResource({ uri })).contents[0];
    return {
      readme: (await read('demo://readme')).text,
      logo: Buffer.from((await read('demo://logo')).blob, 'base64').toString('hex', 0, 8),
      user: (await read('demo://users/42/profile')).text,
      missing: await read('demo://no/such').then(() => 'no error', err => err.code)
    };
  });
  await step('prompt', async () => {
    const greet = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada', style: 'formal' } });
    const review = await client.getPrompt({ name: 'review', arguments: {} });
    return {
      greet: greet.messages[0].content.text,
      embedded: review.messages.map(m => m.content).find(c => c.type === 'resource')?.resource.uri ?? null
    };
  });
  await step('progress', async () => {
    const seen = [];
    const done = await call('countdown', { from: 3, delayMs: 30 }, { onprogress: p => seen.push(p.progress) });
    return { seen, text: text(done) };
  });
  await step('cancel', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort('changed my mind'), 150);
    const outcome = await call('wait', {}, { signal: stop.signal }).then(() => 'answered', () => 'cancelled');
    return { outcome, after: text(await call('echo', { text: 'still here' })) };
  });
  await step('elicit', async () => ({ text: text(await call('ask', { question: 'Who?' })), ...asked.elicit }));
  await step('sample', async () => ({ text: text(await call('sample', { prompt: 'say hi' })) }));
  await step('roots', async () => ({ text: text(await call('roots', {})) }));
  await step('complete', async () => {
    const complete = async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
    const template = { type: 'ref/resource', uri: 'demo://users/{id}/profile' };
    return {
      style: (await complete({ type: 'ref/prompt', name: 'greet' }, 'style', 'f')).join(' '),
      id: (await complete(template, 'id', '24')).join(' '),
      most: (await complete(template, 'id', '')).length
    };
  });
  await step('log', async () => {
    const seen = [];
    on('notifications/message', p => seen.push(`${p.level} ${JSON.stringify(p.data)}`));
    await level('warning');
    await call('log', { level: 'info', message: 'too quiet' });
    await call('log', { level: 'error', message: 'loud enough' });
    await until(() => seen.length);
    return { seen: seen.join('|'), times: seen.length };
  });
  await step('updates', async () => {
    const seen = [];
    on('notifications/resources/updated', p => seen.push(p.uri));
    const end = await listen({ resourceSubscriptions: ['demo://readme'] });
    await call('touch', {});
    await until(() => seen.length);
    await end();
    await call('touch', {});
    return { seen: seen.join('|'), times: seen.length, after: text(await call('echo', { text: 'still here' })) };
  });
  await step('ping', () => client.ping().then(() => 'pong', err => err.code ?? err.name));
}

// wide is the conversation with mcp demo when its lists have pages.
async function wide(client, { call, on, listen }) {
  // pages lists page by page; v2 makes one of them.
  const pages = async (list, kind, name) => {
    const all = [];
    for (let cursor; all.length < 20; ) {
      const page = await list.call(client, cursor === undefined ? undefined : { cursor });
      all.push(page[kind].map(entry => entry[name]));
      if ((cursor = page.nextCursor) === undefined) break;
    }
    return all;
  };
  const tools = () => pages(client.listTools, 'tools', 'name'); // also has the SDK compile the output schemas
  await step('pages', async () => {
    const all = await tools();
    return {
      first: all[0].slice(0, 4).join(' '),
      several: all.length > 1 && all[0].length === 4,
      tools: all.flat(),
      resources: (await pages(client.listResources, 'resources', 'uri')).flat(),
      prompts: (await pages(client.listPrompts, 'prompts', 'name')).flat(),
      bad: await client.listTools({ cursor: 'made up' }).then(() => 'no error', err => err.code)
    };
  });
  await step('structured', async () => {
    const primes = await call('primes', { below: 8 });
    return { primes: primes.structuredContent ?? null, text: text(primes), requests: (await call('requests', {})).structuredContent ?? null };
  });
  await step('content', async () => (await call('content', {})).content.map(c => c.type));
  await step('context', async () => {
    const ref = { type: 'ref/prompt', name: 'translate' };
    const complete = async context => (await client.complete({ ref, argument: { name: 'dialect', value: '' }, ...context })).completion.values.join(' ');
    return { with: await complete({ context: { arguments: { language: 'German' } } }), without: await complete({}) };
  });
  await step('changes', async () => {
    const seen = {};
    for (const kind of ['tools', 'prompts', 'resources']) on(`notifications/${kind}/list_changed`, () => (seen[kind] = true));
    const end = await listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true });
    await call('bonus', { have: true });
    await until(() => seen.tools && seen.prompts && seen.resources);
    await end();
    return { ...seen, bonus: (await tools()).flat().includes('bonus-tool') };
  });
  await step('url', async () => ({ text: await call('pay', { amount: 7 }).then(text, err => err.message), ...asked.url }));
  await step('once', async () => ({ text: text(await call('survey', {})) }));
  await step('rounds', async () => ({ text: text(await call('book', {})) }));
  await step('agent', async () => ({ text: text(await call('agent', { prompt: 'add 2 and 40' })) }));
}

// nap is a call during which the server pings.
async function nap(client, { call }) {
  await step('nap', async () => ({ text: text(await call('nap', {})) }));
}

// cut is a call whose stream breaks, then one that the server closes, then
// the stream of the session.
async function cut(client, { call, on, listen }) {
  await step('call', async () => {
    const seen = [];
    const done = await call('count', { to: 5 }, { onprogress: p => seen.push(p.progress) });
    return { seen, text: text(done) };
  });
  await step('poll', async () => ({ text: text(await call('poll', {})) }));
  await step('stream', async () => {
    const seen = [];
    on('notifications/resources/updated', p => seen.push(p.uri));
    await listen({ resourceSubscriptions: ['peers://watched'] });
    await call('touch', {});
    await until(() => seen.length === 1);
    await call('touch', {});
    await until(() => seen.length === 2);
    return { times: seen.length };
  });
}

// lost is a session that ends before its client knows.
async function lost(client, { call }) {
  await step('lost', async () => {
    const { transport } = client;
    const headers = { 'mcp-session-id': transport.sessionId, 'mcp-protocol-version': transport.protocolVersion };
    const deleted = (await fetch(transport._url, { method: 'DELETE', headers })).status;
    return { deleted, call: await call('count', { to: 1 }).then(() => 'no error', err => err.message) };
  });
}
