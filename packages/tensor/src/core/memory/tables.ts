// Numbers that an op computes on the host from shapes and options, copied to a device: the positions that a pool reads,
// the weights with which an image is resized. On a CUDA device they are copied once and cached, so that the next call
// with the same numbers copies nothing, and a step can be captured once its first calls have made them.
import { kernels } from '../../backends/index.ts';
import { capturing } from '../../device/capture.ts';
import type { Device } from '../../device/device.ts';
import type { DType, HostArray } from '../dtype.ts';
import { allocate, type Storage } from './storage.ts';

/** Bytes of the largest table that is kept, and of all that are kept. */
const mostOfOne = 256 << 10;
const mostOfAll = 4 << 20;

/** The tables that are kept, by device, dtype and content. They are only read. */
const tables = new Map<string, Storage>();
let keptBytes = 0;

/** Returns memory that holds the numbers of `array`, an array of `dtype`. The caller releases it, and only reads it. */
export function tableOn(device: Device, dtype: DType, array: HostArray): Storage {
  const isKept = device !== 'cpu' && array.byteLength > 0 && array.byteLength <= mostOfOne;
  const content = isKept
    ? Buffer.from(array.buffer, array.byteOffset, array.byteLength).toString('latin1')
    : '';
  const key = `${device} ${dtype} ${content}`;
  const found = isKept ? tables.get(key) : undefined;
  if (found !== undefined) return found.retain();
  const storage = allocate(dtype, array.length, device);
  if (array.length > 0) kernels().write(storage.memory, 0, array);
  if (!isKept || capturing() !== null) return storage;
  if (keptBytes + storage.bytes > mostOfAll) dropTables();
  // The copy is on the stream of this call, but later calls may run on other streams. So wait until it has ended.
  kernels().synchronize(device);
  keptBytes += storage.bytes;
  tables.set(key, storage.retain());
  return storage;
}

/** Releases the tables that are kept, when all work that reads them has ended. */
function dropTables(): void {
  for (const device of new Set([...tables.values()].map(({ memory }) => memory.device)))
    kernels().synchronize(device);
  for (const storage of tables.values()) storage.release();
  tables.clear();
  keptBytes = 0;
}
