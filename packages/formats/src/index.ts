export { swapTo } from './byte-order.ts';
export { type Accepted, type ElementType, elementBytes } from './element-types.ts';
export { check, FormatError, HeaderError } from './errors.ts';
export { fromBfloat16, fromFloat16, toBfloat16, toFloat16 } from './half.ts';
export { parseJson } from './json.ts';
export {
  encodeNpyHeader,
  type NpyHeader,
  type NpyType,
  npyHeaderEnd,
  npyStartBytes,
  parseNpyHeader,
} from './npy.ts';
export { readFully } from './read-fully.ts';
export {
  encodeSafetensorsHeader,
  maxSafetensorsHeaderBytes,
  parseSafetensorsHeader,
  planSafetensors,
  type SafetensorsEntry,
  type SafetensorsHeader,
  safetensorsHeaderBytes,
  safetensorsInOrder,
  safetensorsStartBytes,
} from './safetensors.ts';
export { excerpt, quoted } from './text.ts';
export {
  checkZipBytes,
  encodeZip,
  readZipDirectory,
  readZipMember,
  type ZipContent,
  type ZipMember,
} from './zip.ts';
