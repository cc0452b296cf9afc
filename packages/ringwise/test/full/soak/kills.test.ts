// Runs the short form of bench/kills.ts: a training job goes through one disturbance of each kind.

import { canMakeNamespaces, freePort } from '@ringwise/testing';
import { expect, it } from 'vitest';
import { disturbances, soak } from '../../support/kill-soak.ts';

const whyNot = canMakeNamespaces();

it(`killed and stopped ranks, killed launchers${whyNot ? '' : ' and a host that is cut off'} lose nothing and leave nothing`, {
  timeout: 300_000,
}, async () => {
  const plan = disturbances.filter((what) => what !== 'cut' || whyNot === null);
  const result = await soak({
    plan,
    random: () => 0.6,
    namespaces: whyNot === null,
    port: await freePort(),
  });
  expect(result).toMatchObject({ wrong: [], left: [] });
  expect(result.resumed).toBeGreaterThanOrEqual(plan.length);
});
