export { ArrayDataset, type ArrayField, type FieldArrays } from './array-dataset.ts';
export { BatchSampler, type BatchSamplerOptions, type BatchSource } from './batch-sampler.ts';
export { BlockRandomSampler, type BlockRandomSamplerOptions } from './block-random-sampler.ts';
export { type Collated, defaultCollate } from './collate.ts';
export { concatDatasets } from './concat-datasets.ts';
export { DataLoader } from './data-loader.ts';
export { type Dataset, type Indices, type IterableDataset, mapDataset, Subset } from './dataset.ts';
export { type DatasetModule, loadDataset } from './dataset-module.ts';
export { DistributedSampler, type DistributedSamplerOptions } from './distributed-sampler.ts';
export { DataError, type DataErrorCode } from './errors.ts';
export { LengthGroupedSampler, type LengthGroupedSamplerOptions } from './length-grouped-sampler.ts';
export type { CollateOption, DataLoaderOptions } from './loader-options.ts';
export { type NormalizeOptions, normalize } from './normalize.ts';
export { type ProgressOptions, type ProgressStream, progress } from './progress.ts';
export { randperm } from './random.ts';
export type { Resumable, Sampler, SamplerState } from './sampler.ts';
export {
  RandomSampler,
  type SeedOption,
  SequentialSampler,
  SubsetRandomSampler,
  WeightedRandomSampler,
  type WeightedRandomSamplerOptions,
} from './samplers.ts';
export { type ShardOptions, shard } from './shard.ts';
export type { NdArray, TypedArray } from './typed-array.ts';
export type { LoaderStatistics } from './wait-times.ts';
export { type WorkerInfo, workerInfo } from './worker-info.ts';
