// A rank that has no descriptor left when it makes a group, for few-descriptors.test.ts.
import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { MemoryStore } from '@ringwise/store';
import { hostId } from '../../src/backends/host-address.ts';
import { CollectiveError, init } from '../../src/index.ts';

/** Returns the code and the text of what init() and hostId() throw. */
export async function withoutDescriptors(_rank: number, backend: string): Promise<[unknown, string][]> {
  const make = () => init({ backend, store: new MemoryStore(), rank: 0, size: 1 });
  await (await make()).close(); // loads the addon
  process.env.RINGWISE_HOST_ID = 'known';
  spawnSync('prlimit', ['--pid', `${process.pid}`, '--nofile=300:300']);
  const files: number[] = [];
  try {
    for (;;) files.push(openSync('/dev/null', 'r'));
  } catch {
    const errors = [await make().then(() => null, told)];
    delete process.env.RINGWISE_HOST_ID;
    try {
      errors.push(told(hostId()));
    } catch (error) {
      errors.push(told(error));
    }
    return errors as [unknown, string][];
  } finally {
    for (const file of files) closeSync(file);
  }
}

function told(error: unknown): [unknown, string] {
  return CollectiveError.is(error) ? [error.code, error.message] : ['no CollectiveError', String(error)];
}
