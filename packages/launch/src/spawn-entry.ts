// What a rank of spawn() runs: takes one call from its parent, makes it, sends the result, and ends.

import { type EventEmitter, once } from 'node:events';
import { flushOutput } from './terminal.ts';

export interface Call {
  readonly url: string;
  readonly exportName: string;
  /** The rank first. */
  readonly args: readonly unknown[];
}

export interface Reply {
  readonly result: unknown;
}

const [call] = (await once(process, 'message')) as [Call];
try {
  const reply: Reply = { result: await make(call) };
  // Both the result and the output may still be on their way when the calls return.
  await new Promise((resolve) => process.send!(reply, resolve));
  await flushOutput();
  process.exit();
} catch (error) {
  // To rank.ts this is an uncaught error, but node does not print it: the parent rejects with it.
  (process as EventEmitter).emit('uncaughtExceptionMonitor', error);
  await flushOutput();
  process.exit(1);
}

async function make({ url, exportName, args }: Call): Promise<unknown> {
  const module = (await import(url)) as Record<string, unknown>;
  const body = module[exportName];
  if (typeof body === 'function') return await body(...args);
  throw new TypeError(
    `spawn: ${url} has no function named '${exportName}'; it exports ${Object.keys(module).join(', ') || 'nothing'}. ` +
      'Export one, or name it with exportName.',
  );
}
