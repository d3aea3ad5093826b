// One conversation with the demo server, for any TypeScript client: every step
// prints one JSON line, {"step":…,"ok":…,"detail":…}, and the program exits
// with 1 if a step failed. peers_test.go judges the details.

export const answers = {
  elicit: params => {
    asked.elicit = { message: params.message, fields: Object.keys(params.requestedSchema.properties).sort() };
    return { action: 'accept', content: { agree: true, name: 'Ada' } };
  },
  sample: params => {
    const prompt = first(params.messages[0].content).text;
    return { role: 'assistant', model: 'peer-model', stopReason: 'endTurn', content: { type: 'text', text: `model heard: ${prompt}` } };
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

// connect opens the client's connection and answers the revision it settled
// on; call is (name, args, options) => result.
export async function scenario(client, connect, call) {
  await step('connect', connect);
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
  await step('close', async () => void (await client.close()));
  process.exit(failures ? 1 : 0);
}
