// The exports of @ringwise/tensor/safetensors. Importing it adds the methods to tensors.
import '../../ops/methods/index.ts';

export { type LoadOptions, openSafetensors, type SafetensorsFile, type TensorInfo } from './file.ts';
export { loadShardedSafetensors, type ShardOptions, saveShardedSafetensors } from './sharded.ts';
export { loadSafetensors, safetensorsMetadata, saveSafetensors } from './whole.ts';
