const headers = { authorization: `Bearer ${process.env.MIZU_API_KEY}`, 'content-type': 'application/json' };

async function call(path: string, init: RequestInit = {}) {
  const answer = await fetch(`__BASE_URL__${path}`, { ...init, headers: { ...headers, ...init.headers } });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Keep this key with the order. Sent again, it finds the same task, and nothing is charged twice.
let task = await call('/v1/videos', {
  method: 'POST',
  headers: { 'idempotency-key': crypto.randomUUID() },
  body: JSON.stringify({ model: '__MODEL__', prompt: 'Waves against a pier, slow motion', duration: 6 }),
});
while (['queued', 'submitting', 'running'].includes(task.status)) {
  await new Promise((resolve) => setTimeout(resolve, 5000));
  task = await call(`/v1/videos/${task.id}`);
}
console.log(task.status, task.output ?? task.error);
