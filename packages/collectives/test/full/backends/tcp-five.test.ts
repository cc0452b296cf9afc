// Runs the contract of backends on tcp with four and five ranks. test/processes/tcp/contract.test.ts has fewer ranks.
import { Pools } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract, blockingTests } from '../../../contract/index.ts';
import { tcpRanks } from '../../support/pool.ts';

const pools = new Pools(tcpRanks());
backendContract({ describe, it, expect }, 'tcp', {
  run: pools.run,
  sizes: [4, 5],
  skip: [{ reason: 'its ranks may not block the JavaScript thread', tests: blockingTests }],
});
afterAll(pools.end);
