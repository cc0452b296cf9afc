// Runs a short form of bench/kills.ts: one training job gets each kind of disturbance once. Without network namespaces
// no host can be cut off, so that kind is left out.

import { freePort, whyNoNamespaces } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { disturbances, soak } from '../../support/kill-soak.ts';

const hasNamespaces = whyNoNamespaces() === null;

it(`a job trains on correctly after kills and stops of ranks, kills of launchers${hasNamespaces ? ' and the loss of a host' : ''}, and leaves nothing behind`, {
  timeout: 300_000,
}, async () => {
  const plan = disturbances.filter((disturbance) => disturbance !== 'cut' || hasNamespaces);
  const result = await soak({
    plan,
    random: () => 0.6, // chooses the moment and the victim
    namespaces: hasNamespaces,
    port: await freePort(),
  });
  // No wrong losses, and no processes or files left. A disturbance may make a job resume more than once.
  expect(result).toMatchObject({ wrong: [], left: [] });
  expect(result.resumed).toBeGreaterThanOrEqual(plan.length);
});
