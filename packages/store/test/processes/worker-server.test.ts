// Tests the store's server in a worker thread. Uses the built package, because the worker's entry in the sources is
// TypeScript, which Node 20 cannot run.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { TcpStore } from '../../src/index.ts';

const dist = new URL('../../dist/index.js', import.meta.url).href;
const { serveStoreInWorker }: typeof import('../../src/index.ts') = await import(dist);

it('serves while the thread that started it is busy', async () => {
  const code = `import { serveStoreInWorker } from ${JSON.stringify(dist)};
    const server = await serveStoreInWorker();
    process.stdout.write(server.port + '\\n');
    while (true);`;
  const child = execFile(process.execPath, ['--input-type=module', '-e', code]);
  try {
    const port = await new Promise<number>((resolve) =>
      child.stdout!.once('data', (line) => resolve(Number(line))),
    );
    const store = await TcpStore.connect({ host: '127.0.0.1', port, timeoutMs: 60_000 });
    expect(await store.add('n', 2)).toBe(2);
    await store.close();
  } finally {
    child.kill('SIGKILL');
  }
});

it('does not keep the process alive', async () => {
  const code = `import { serveStoreInWorker } from ${JSON.stringify(dist)};
    await serveStoreInWorker();
    process.stdout.write('end of the program');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code]);
  expect(stdout).toBe('end of the program');
});

it('has the options, errors and close() of serveStore', async () => {
  const server = await serveStoreInWorker({ secret: 'the secret' });
  const store = await TcpStore.connect({ ...server, secret: 'the secret', timeoutMs: 60_000 });
  await store.set('k', 'v');
  await expect(serveStoreInWorker({ port: server.port })).rejects.toMatchObject({
    code: 'ERR_STORE_LISTEN',
    message: expect.stringContaining('in use'),
  });
  await expect(serveStoreInWorker({ host: '0.0.0.0' })).rejects.toMatchObject({ code: 'ERR_STORE_LISTEN' });
  await server.close();
  await expect(store.get('k')).rejects.toMatchObject({ code: 'ERR_STORE_LOST' });
  await server.close();
});
