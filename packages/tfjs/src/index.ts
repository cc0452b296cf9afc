export { DataParallel, dataParallel } from './data-parallel.ts';
export { TfjsError, type TfjsErrorCode } from './errors.ts';
export type { OptimizedVariables } from './model.ts';
export { type Place, shard } from './shard.ts';
