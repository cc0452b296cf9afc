export { averageGradients } from './average.ts';
export type { BucketParam } from './bucket.ts';
export { type DistributedDataParallel, ddp } from './ddp.ts';
export { DdpError, type DdpErrorCode } from './errors.ts';
export { type GradParam, type GradParamSource, gradParamsSymbol } from './grad-param.ts';
export { assertInSync, inSync } from './in-sync.ts';
export type { DdpOptions } from './options.ts';
export {
  type BucketPlan,
  type PlanLimits,
  type PlanParam,
  planBuckets,
  planHash,
  type Slot,
} from './plan.ts';
export { Reducer, type UnusedPolicy } from './reducer.ts';
