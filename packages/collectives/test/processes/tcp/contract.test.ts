// Tests the tcp backend with real processes on one host.
import { Pools } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract, blockingTests } from '../../../contract/index.ts';
import { tcpRanks } from '../../support/pool.ts';

const pools = new Pools(tcpRanks());
backendContract({ describe, it, expect }, 'tcp', {
  run: pools.run,
  sizes: [1, 2, 3],
  skip: [{ reason: 'its ranks may not block the JavaScript thread', tests: blockingTests }],
});
afterAll(pools.end);
