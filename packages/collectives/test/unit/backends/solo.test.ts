import { describe, expect, it } from 'vitest';
import { backendContract, runScenario } from '../../../contract/index.ts';
import { init } from '../../../src/index.ts';

backendContract({ describe, it, expect }, 'solo', {
  sizes: [1],
  run: async (_, scenario, args) => {
    const group = await init({ rank: 0, size: 1, timeoutMs: 10_000 });
    const outcome = await runScenario(group, scenario, args);
    await group.close();
    return [outcome];
  },
});
