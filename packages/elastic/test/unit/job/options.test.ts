// Calls of elastic() as newcomers write them.
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

test('the promise of elastic() is no job', async () => {
  const pending = elastic({ size: 1, leaveOn: null });
  const unawaited = pending as unknown as { readonly loader: unknown };
  expect(() => unawaited.loader).toThrow(
    'job.loader: elastic() gives a promise, which was not awaited; expected const job = await elastic().',
  );
  const job = await pending;
  await job.close();
});
