// The contract of backends on the host backend when no two ranks share a host, so that all of them meet over TCP.
import { Pools } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../contract/index.ts';
import { hostRanks } from '../../support/pool.ts';

const pools = new Pools(hostRanks(true));
backendContract({ describe, it, expect }, 'host, over TCP only', { run: pools.run });
afterAll(pools.end);
