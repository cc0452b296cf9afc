// Options of elastic() under names that they have elsewhere.
import { expect, test } from 'vitest';
import { elastic } from '../../../src/index.ts';

test.each([
  ['minRanks', 'min'],
  ['min_np', 'min'],
  ['worldSize', 'size'],
  ['timeout', 'timeoutMs'],
])('%s is called %s', async (name, ours) => {
  await expect(elastic({ [name]: 1 } as never)).rejects.toThrow(
    `elastic: unknown option '${name}'; expected '${ours}'.`,
  );
});
