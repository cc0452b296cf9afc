// The kernels in plain TypeScript: slow, complete, and the definition of what is right.
import { type DType, dtypeInfo, type HostArray } from '../../core/dtype.ts';
import { noAddresses, onlyOnHost } from '../../errors.ts';
import type { Kernels } from '../kernels.ts';
import type { Memory } from '../operands.ts';
import { attention, attentionGrad } from './attention.ts';
import { crossEntropy, crossEntropyGrad } from './cross-entropy.ts';
import * as layers from './layers.ts';
import { linear, linearGrad } from './linear.ts';
import { copy, map } from './map.ts';
import { logSoftmax, logSoftmaxGrad, matmul, nll, nllGrad } from './matrices.ts';
import { norm, normGrad } from './norm.ts';
import { optimize, scale, totalNorm } from './optimizer.ts';
import { cumsum, lookup, scatterAdd, sort, triangle } from './order.ts';
import { dropout, random } from './random.ts';
import { argReduce, reduce } from './reduce.ts';

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
  // The collector takes the array.
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
  reduce,
  argReduce,
  matmul,
  linear,
  linearGrad,
  logSoftmax,
  logSoftmaxGrad,
  nll,
  nllGrad,
  crossEntropy,
  crossEntropyGrad,
  lookup,
  scatterAdd,
  cumsum,
  sort,
  triangle,
  ...layers,
  norm,
  normGrad,
  attention,
  attentionGrad,
  random,
  dropout,
  optimize,
  totalNorm,
  scale,
};
