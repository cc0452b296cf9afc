// Runs the contract of backends on the host backend with each rank on a host of its own, so that all links are TCP.
import { Pools } from '@ringwise/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { backendContract } from '../../../contract/index.ts';
import { hostRanks } from '../../support/pool.ts';

const pools = new Pools(hostRanks(true));
backendContract({ describe, it, expect }, 'host, over TCP only', { run: pools.run });
afterAll(pools.end);
