// Loads the micro-batches of a rank ahead.
import { expect, it } from 'vitest';
import { asked, loaderOf, slow, step } from '../../support/loaders.ts';

it('loads ahead of the training, into the next steps', async () => {
  asked.length = 0;
  const loader = loaderOf(slow, { prefetch: 4 });
  await step(loader, true);
  expect(asked.length).toBeGreaterThan(6);
});

it('says that only one loop may iterate it', async () => {
  const loader = loaderOf(slow);
  const [, second] = loader.owned(loader.plan());
  await expect(loader.take(second!)).rejects.toThrow(
    'loader: its next batch has positions 0 to 1 of epoch 0; expected positions 2 to 3 of epoch 0.',
  );
});
