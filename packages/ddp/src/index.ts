export { type ClipShardedOptions, clipShardedGradients } from './clip.ts';
export { byRank, DdpError, type DdpErrorCode } from './errors.ts';
export { compressHook, type HalfType } from './hooks/compress.ts';
export {
  PeriodicAverager,
  type PeriodicAveragerOptions,
  type PostLocalSGDOptions,
  postLocalSGDHook,
} from './hooks/local-sgd.ts';
export { type PowerSGDOptions, powerSGDHook } from './hooks/power-sgd.ts';
export { wireHook } from './hooks/wire.ts';
export { averageGradients } from './reducer/average.ts';
export type { BucketParam } from './reducer/bucket.ts';
export {
  type BucketGradient,
  type CommHook,
  type GradBucket,
  plainHook,
  type SharedHookState,
} from './reducer/hook.ts';
export { valueCarrier } from './reducer/memory.ts';
export {
  type BucketPlan,
  type PlanLimits,
  type PlanParam,
  planBuckets,
  planHash,
  type Slot,
} from './reducer/plan.ts';
export { Reducer, type ReducerOptions, type UnusedPolicy } from './reducer/reducer.ts';
export {
  type Extent,
  type PackedState,
  packState,
  type Revive,
  type SnapshotTensor,
  type UnpackedState,
  unpackState,
} from './snapshot/format.ts';
export { type PerRank, perRank } from './snapshot/own-state.ts';
export { type LoadSnapshotOptions, loadSnapshot, saveSnapshot } from './snapshot/snapshot.ts';
export type { BucketStatistics, StepStatistics } from './statistics/statistics.ts';
export type { DdpTrace, DdpTraceEvent } from './statistics/trace.ts';
export {
  type BatchNormExchange,
  convertSyncBatchNorm,
  exchangeOver,
  hasSyncBatchNorm,
  type ModuleTree,
  withBatchWeight,
} from './sync-batch-norm.ts';
export { type DataParallel, type DataParallelOptions, dataParallel } from './threads/data-parallel.ts';
export { type DistributedDataParallel, ddp, type WeightableLoss } from './wrapper/ddp.ts';
export {
  type BucketMemory,
  buffersSymbol,
  type FrozenParam,
  frozenParamsSymbol,
  type GradParam,
  type GradParamSource,
  gradParamsSymbol,
  type StateBuffer,
} from './wrapper/grad-param.ts';
export { assertInSync, inSync } from './wrapper/in-sync.ts';
export type { DdpOptions } from './wrapper/options.ts';
export type {
  LoadableTensor,
  ParamStateOf,
  Remembered,
  SavedGroup,
  StateOf,
} from './zero/state.ts';
export {
  type ConsolidatedState,
  type RebindOptions,
  type ShardOptimizer,
  type ShardState,
  type ZeroOptions,
  ZeroRedundancyOptimizer,
} from './zero/zero.ts';
