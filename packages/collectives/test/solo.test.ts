import { describe, expect, it } from 'vitest';
import { solo } from '../src/backends/solo.ts';
import { Group } from '../src/index.ts';
import { backendContract, runScenario } from '../src/testing.ts';

backendContract({ describe, it, expect }, 'solo', {
  sizes: [1],
  run: async (_, scenario, args) => {
    const group = new Group(solo(), { name: 'solo', timeoutMs: 10_000 });
    const outcome = await runScenario(group, scenario, args);
    await group.close();
    return [outcome];
  },
});
