// Runs the contract of backends with four ranks in shared memory. test/processes/host.test.ts has fewer ranks.
import { Pools } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../contract/index.ts';
import { hostRanks } from '../../support/pool.ts';

const pools = new Pools(hostRanks());
backendContract({ describe, it, expect }, 'host', { run: pools.run, sizes: [4] });
afterAll(pools.end);
