// The kernels in plain TypeScript: slow, complete, and the definition of the correct results.
import { type DType, dtypeInfo, type HostArray } from '../../core/dtype.ts';
import { noAddresses, onlyOnHost } from '../../errors.ts';
import type { Kernels } from '../kernels.ts';
import type { Memory } from '../operands.ts';
import * as attention from './attention.ts';
import * as crossEntropy from './cross-entropy.ts';
import * as layers from './layers.ts';
import * as linear from './linear.ts';
import * as lstm from './lstm.ts';
import { copy, map } from './map.ts';
import * as matrices from './matrices.ts';
import * as norm from './norm.ts';
import * as optimizer from './optimizer.ts';
import * as order from './order.ts';
import * as random from './random.ts';
import * as reduce from './reduce.ts';

let lastHandle = 0;
const wrap = (dtype: DType, host: HostArray): Memory => ({
  dtype,
  count: host.length,
  handle: ++lastHandle,
  device: 'cpu',
  host,
});

export const referenceKernels: Kernels = {
  name: 'reference',
  cuda: null,
  alloc: (dtype, count, device = 'cpu') => {
    if (device !== 'cpu') throw onlyOnHost(device);
    return wrap(dtype, new dtypeInfo[dtype].array(count));
  },
  adopt: wrap,
  // The garbage collector frees the array.
  free: () => {},
  address: () => {
    throw noAddresses();
  },
  borrow: () => {
    throw noAddresses();
  },
  numThreads: () => 1,
  setNumThreads: () => {},
  write: (memory, offset, array) => memory.host.set(array as never, offset),
  read: (memory, offset, into) => into.set(memory.host.subarray(offset, offset + into.length) as never),
  readAsync: async (memory, offset, into) =>
    into.set(memory.host.subarray(offset, offset + into.length) as never),
  synchronize: () => {},
  trim: () => {},
  map,
  copy,
  // These files export kernels alone, each under its name.
  ...reduce,
  ...matrices,
  ...linear,
  ...crossEntropy,
  ...order,
  ...layers,
  ...norm,
  ...lstm,
  ...attention,
  ...random,
  ...optimizer,
};
