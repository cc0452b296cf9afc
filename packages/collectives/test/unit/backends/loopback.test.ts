import { describe, expect, it } from 'vitest';
import { backendContract, blockingTests, runScenario } from '../../../contract/index.ts';
import { loopbackGroups } from '../../../src/index.ts';

backendContract({ describe, it, expect }, 'loopback', {
  run: async (size, scenario, args) => {
    const groups = loopbackGroups(size);
    const outcomes = await Promise.all(groups.map((group) => runScenario(group, scenario, args)));
    await Promise.all(groups.map((group) => group.close()));
    return outcomes;
  },
  skip: [{ reason: 'all ranks share one thread, which must not block', tests: blockingTests }],
});
