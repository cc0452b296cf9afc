export { averageGradients } from './average.ts';
export type { BucketParam } from './bucket.ts';
export { clipShardedGradients } from './clip.ts';
export { type DistributedDataParallel, ddp, type WeightableLoss } from './ddp.ts';
export { DdpError, type DdpErrorCode } from './errors.ts';
export {
  type BucketMemory,
  buffersSymbol,
  type FrozenParam,
  frozenParamsSymbol,
  type GradParam,
  type GradParamSource,
  gradParamsSymbol,
  type StateBuffer,
} from './grad-param.ts';
export { type BucketGradient, type CommHook, type GradBucket, plainHook } from './hook.ts';
export { compressHook, type HalfType } from './hooks/compress.ts';
export {
  PeriodicAverager,
  type PeriodicAveragerOptions,
  type PostLocalSGDOptions,
  postLocalSGDHook,
} from './hooks/local-sgd.ts';
export { type PowerSGDOptions, powerSGDHook } from './hooks/power-sgd.ts';
export { wireHook } from './hooks/wire.ts';
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
export { Reducer, type ReducerOptions, type UnusedPolicy } from './reducer.ts';
export type { Revive, SnapshotTensor } from './snapshot/format.ts';
export { type PerRank, perRank } from './snapshot/own-state.ts';
export { type LoadSnapshotOptions, loadSnapshot, saveSnapshot } from './snapshot/snapshot.ts';
export type { BucketStatistics, StepStatistics } from './statistics.ts';
export {
  type BatchNormExchange,
  convertSyncBatchNorm,
  exchangeOver,
  type ModuleTree,
} from './sync-batch-norm.ts';
export type { DdpTrace, DdpTraceEvent } from './trace.ts';
export {
  type ConsolidatedState,
  type SavedTensor,
  type ShardOptimizer,
  type ShardState,
  ZeroRedundancyOptimizer,
} from './zero.ts';
