export { ArrayDataset, type ArrayField, type FieldArrays } from './datasets/array.ts';
export { concatDatasets } from './datasets/concat.ts';
export { type Dataset, type Indices, type IterableDataset, mapDataset, Subset } from './datasets/dataset.ts';
export { type DatasetModule, loadDataset } from './datasets/dataset-module.ts';
export { type NormalizeOptions, normalize } from './datasets/normalize.ts';
export { DataError, type DataErrorCode } from './errors.ts';
export { type Collated, defaultCollate } from './loader/collate.ts';
export { DataLoader } from './loader/data-loader.ts';
export type {
  CollateOption,
  ConvertOption,
  DataLoaderOptions,
  SingleSamples,
} from './loader/loader-options.ts';
export { type ProgressOptions, type ProgressStream, progress } from './loader/progress.ts';
export type { LoaderStatistics } from './loader/wait-times.ts';
export { type WorkerInfo, workerInfo } from './loader/worker-info.ts';
export { BatchSampler, type BatchSamplerOptions, type BatchSource } from './samplers/batch-sampler.ts';
export { BlockRandomSampler, type BlockRandomSamplerOptions } from './samplers/block-random-sampler.ts';
export { DistributedSampler, type DistributedSamplerOptions } from './samplers/distributed-sampler.ts';
export { LengthGroupedSampler, type LengthGroupedSamplerOptions } from './samplers/length-grouped-sampler.ts';
export { randperm } from './samplers/random.ts';
export type { Resumable, Sampler, SamplerState } from './samplers/sampler.ts';
export {
  RandomSampler,
  type RandomSamplerOptions,
  type SeedOption,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
  type WeightedRandomSamplerOptions,
} from './samplers/samplers.ts';
export { type ShardOptions, shard } from './samplers/shard.ts';
export type { NdArray, TypedArray } from './typed-array.ts';
