export { withDeadlines } from './deadlines.ts';
export { deviceMemoryAddon, hasTestDevice, isTestGpu, testDeviceOf, useTestDevice } from './device.ts';
export {
  type ExactBuffer,
  type ExactDType,
  type ExactOp,
  exactDTypes,
  exactInput,
  expectedReduce,
  toNumbers,
} from './exact.ts';
export { freePort } from './free-port.ts';
export { type Host, type Hosts, makeHosts, type StartOptions, whyNoNamespaces } from './namespaces.ts';
export { openStore } from './open-store.ts';
export { Pool, type PoolStarter, Pools, serveCommands } from './pool.ts';
export { type RankError, type RankResult, values } from './results.ts';
export { type RankOptions, type RunningRanks, startRanks, withRanks } from './start-ranks.ts';
export { testData } from './test-data.ts';
