import { describe, expect, it } from 'vitest';
import { loopbackGroups } from '../src/index.ts';
import { backendContract, runScenario } from '../src/testing.ts';

backendContract({ describe, it, expect }, 'loopback', {
  run: async (size, scenario, args) => {
    const groups = loopbackGroups(size);
    const outcomes = await Promise.all(groups.map((group) => runScenario(group, scenario, args)));
    await Promise.all(groups.map((group) => group.close()));
    return outcomes;
  },
  skip: [
    {
      reason: 'all ranks share one thread, which must not block',
      tests: [
        'reduces every dtype with every op exactly, Sync',
        'broadcasts and gathers every dtype exactly, Sync',
        'sends and receives exactly, Sync',
        'names the rank that never came when the time is over, Sync',
        'runs Sync calls and fences after what was started before',
        'gives the same bits through the Sync verbs',
      ],
    },
  ],
});
