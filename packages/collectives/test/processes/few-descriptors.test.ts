// A process that has as many descriptors as it may have, such as one with very many groups.
import { spawnSync } from 'node:child_process';
import { values, withRanks } from '@ringwise/testing';
import { expect, it } from 'vitest';

const module = new URL('../support/few-descriptors.ts', import.meta.url);
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0;

it.skipIf(!hasPrlimit).each(['host', 'tcp'])(
  'makes no group of the %s backend, and says which limit it has reached',
  async (backend) => {
    const [errors] = values(await withRanks(1, module, 'withoutDescriptors', { args: [backend] }));
    expect(errors).toEqual([
      ['ERR_COLL_SYSTEM', expect.stringMatching(/^init: cannot .* \(group "world", rank 0 of 1\)/)],
      [
        'ERR_COLL_SYSTEM',
        expect.stringMatching(/^init: cannot read which host this is: EMFILE: .*ulimit -n/),
      ],
    ]);
  },
);
