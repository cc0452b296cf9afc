// The kernels in C++ (native/tensor), called with integer handles and plain numbers. Every worker thread that uses
// tensors has its own instance of the addon.
import { markAsUntransferable } from 'node:worker_threads';
import { type DType, dtypeInfo, type HostArray } from '../../core/dtype.ts';
import { refuseWhileCapturing } from '../../device/capture.ts';
import { cudaIndex } from '../../device/device.ts';
import { fromAddon, unknownCpuLevel } from '../../errors.ts';
import {
  type Input,
  type Kernels,
  type Loan,
  type MapOp,
  type Memory,
  mapOps,
  reduceOps,
  type Strided,
} from '../kernels.ts';
import { type CudaInfo, loadAddon, type NativeAddon } from './addon.ts';
import { allocCuda, borrowCuda, cudaControl, cudaInfoOf, onDevice } from './cuda.ts';
import { layerKernels } from './layers.ts';
import { deviceLinear, linearKernels } from './linear.ts';
import { lossKernels } from './loss.ts';
import { nnKernels } from './nn.ts';
import { optimizerKernels } from './optimizer.ts';

function numbered<Name extends string>(names: readonly Name[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, i) => [name, i])) as Record<Name, number>;
}

const mapCodes: Readonly<Record<MapOp, number>> = numbered(mapOps);
const reduceCodes = numbered(reduceOps);
const cpuLevels = ['baseline', 'avx2', 'avx512'];

function adopt(addon: NativeAddon, dtype: DType, host: HostArray): Memory {
  return { dtype, count: host.length, handle: addon.adopt(host, dtypeInfo[dtype].code), device: 'cpu', host };
}

/** Space to move the first element to a multiple of 64 bytes. */
const alignmentBytes = 64;

function alloc(addon: NativeAddon, dtype: DType, count: number): Memory {
  const { array, bytes } = dtypeInfo[dtype];
  const buffer = new ArrayBuffer(count * bytes + alignmentBytes);
  // A transfer would take the memory away from under its handle.
  markAsUntransferable(buffer);
  return adopt(addon, dtype, new array(buffer, addon.padding(buffer), count));
}

function borrow(addon: NativeAddon, loan: Loan): Memory {
  const { dtype, count, address, owner, release } = loan;
  const { array, bytes, code } = dtypeInfo[dtype];
  const buffer = onDevice(() => addon.bufferAt(address, count * bytes));
  markAsUntransferable(buffer);
  const host = new array(buffer, 0, count);
  return { dtype, count, handle: addon.borrow(host, code, owner, release), device: 'cpu', host };
}

/** Where shape and strides begin in the scratch array, behind a pair of numbers for each operand. */
const shapeAt = 8;
/** Where the numbers of a call begin, behind the most that a walk has: 1 + (1 + 4 operands) · 16 dimensions. */
const numbersAt = shapeAt + 81;

/** Writes operands to the scratch array, which C++ reads; tensor_state.h has its layout. */
export class Writer {
  readonly #scratch: Float64Array;
  /** Where the strides of the next operand go. */
  #at = 0;

  constructor(scratch: Float64Array) {
    this.#scratch = scratch;
  }

  /** Operand i: a handle and an offset, or no handle and a number. */
  setOperand(i: number, operand: Input): void {
    const scratch = this.#scratch;
    if (typeof operand === 'number') {
      scratch[2 * i] = 0;
      scratch[2 * i + 1] = operand;
    } else {
      scratch[2 * i] = operand.memory.handle;
      scratch[2 * i + 1] = operand.offset;
    }
  }

  dense(a: Strided, b: Strided, c: Input = 0): void {
    this.setOperand(0, a);
    this.setOperand(1, b);
    this.setOperand(2, c);
  }

  /** Number `i` of a call without arguments. */
  number(i: number, value: number): void {
    this.#scratch[numbersAt + i] = value;
  }

  /** A number at place `i` behind the operands, where other calls have the shape. */
  list(i: number, value: number): void {
    this.#scratch[shapeAt + i] = value;
  }

  /** Starts a walk over operands of any strides. One whose operands are all dense has a single dimension. */
  shape(shape: readonly number[], areDense: boolean): void {
    const scratch = this.#scratch;
    if (areDense) {
      let count = 1;
      for (let d = 0; d < shape.length; d++) count *= shape[d]!;
      scratch[shapeAt] = 1;
      scratch[shapeAt + 1] = count;
      this.#at = shapeAt + 2;
    } else {
      scratch[shapeAt] = shape.length;
      for (let d = 0; d < shape.length; d++) scratch[shapeAt + 1 + d] = shape[d]!;
      this.#at = shapeAt + 1 + shape.length;
    }
  }

  strided(i: number, operand: Input, shape: readonly number[], areDense: boolean): void {
    this.setOperand(i, operand);
    const scratch = this.#scratch;
    const at = this.#at;
    if (areDense) {
      scratch[at] = 1;
      this.#at = at + 1;
      return;
    }
    this.#at = at + shape.length;
    if (typeof operand === 'number') return;
    const { strides } = operand;
    let stride = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      scratch[at + d] = strides === null ? stride : strides[d]!;
      stride *= shape[d]!;
    }
  }
}

const isDense = (operand: Input): boolean => typeof operand === 'number' || operand.strides === null;

function kernelsOf(addon: NativeAddon): Kernels {
  const writer = new Writer(addon.scratch);
  const walk = (
    shape: readonly number[],
    out: Strided,
    a: Input,
    b: Input | undefined,
    c: Input | undefined,
  ): number => {
    const areDense =
      out.strides === null &&
      isDense(a) &&
      (b === undefined || isDense(b)) &&
      (c === undefined || isDense(c));
    writer.shape(shape, areDense);
    writer.strided(0, out, shape, areDense);
    writer.strided(1, a, shape, areDense);
    if (b === undefined) return 2;
    writer.strided(2, b, shape, areDense);
    if (c === undefined) return 3;
    writer.strided(3, c, shape, areDense);
    return 4;
  };
  const kernels: Kernels = {
    name: 'native',
    alloc: (dtype, count, device = 'cpu') =>
      device === 'cpu' ? alloc(addon, dtype, count) : allocCuda(addon, dtype, count, device),
    adopt: (dtype, array) => adopt(addon, dtype, array),
    free: (memory) => addon.free(memory.handle),
    address: (memory) => addon.address(memory.handle),
    borrow: (loan) => (loan.device === 'cpu' ? borrow(addon, loan) : borrowCuda(addon, loan)),
    numThreads: () => addon.numThreads(),
    setNumThreads: (count) => addon.setNumThreads(count),
    write: (memory, offset, array) => {
      refuseWhileCapturing('a copy from host memory');
      if (memory.device === 'cpu') memory.host.set(array as never, offset);
      else onDevice(() => addon.cudaUpload(memory.handle, offset, array, false));
    },
    read: (memory, offset, into) => {
      refuseWhileCapturing('a copy to host memory');
      if (memory.device === 'cpu') into.set(memory.host.subarray(offset, offset + into.length) as never);
      else onDevice(() => addon.cudaDownload(memory.handle, offset, into));
    },
    readAsync: async (memory, offset, into) => {
      refuseWhileCapturing('a copy to host memory');
      if (memory.device === 'cpu') into.set(memory.host.subarray(offset, offset + into.length) as never);
      else {
        const done = onDevice(() => addon.cudaDownloadAsync(memory.handle, offset, into));
        await done.catch((error: unknown) => {
          throw fromAddon(error);
        });
      }
    },
    synchronize: (device) => {
      refuseWhileCapturing('synchronize');
      if (device !== 'cpu') onDevice(() => addon.cudaSynchronize(cudaIndex(device)));
    },
    trim: (device) => {
      refuseWhileCapturing('emptyCache');
      if (device !== 'cpu') onDevice(() => addon.cudaEmptyCache(cudaIndex(device)));
    },

    map: (op, compute, shape, out, a, b, c) => {
      writer.number(2, walk(shape, out, a, b, c));
      writer.number(0, mapCodes[op]);
      writer.number(1, dtypeInfo[compute].code);
      addon.map();
    },
    copy: (shape, out, a) => {
      walk(shape, out, a, undefined, undefined);
      addon.copy();
    },
    reduce: (op, shape, out, a) => {
      walk(shape, out, a, undefined, undefined);
      writer.number(0, reduceCodes[op]);
      addon.reduce();
    },
    argReduce: (op, shape, out, a) => {
      walk(shape, out, a, undefined, undefined);
      writer.number(0, op === 'max' ? 1 : 0);
      addon.argReduce();
    },
    matmul: (shape, out, a, b, { m, n, k, aStep, bStep, transA, transB, accumulate }) => {
      walk(shape, out, a, b, undefined);
      writer.number(0, m);
      writer.number(1, n);
      writer.number(2, k);
      writer.number(3, aStep);
      writer.number(4, bStep);
      writer.number(5, (transA ? 1 : 0) | (transB ? 2 : 0) | (accumulate ? 4 : 0));
      addon.matmul();
    },

    logSoftmax: (out, a, rows, cols) => {
      writer.dense(out, a);
      addon.logSoftmax(rows, cols);
    },
    logSoftmaxGrad: (gradIn, gradOut, out, rows, cols) => {
      writer.dense(gradIn, gradOut, out);
      addon.logSoftmaxGrad(rows, cols);
    },
    nll: (losses, logProbs, labels, rows, cols) => {
      writer.dense(losses, logProbs, labels);
      addon.nll(rows, cols);
    },
    nllGrad: (gradIn, gradLosses, labels, rows, cols) => {
      writer.dense(gradIn, gradLosses, labels);
      addon.nllGrad(rows, cols);
    },

    lookup: (out, a, index, { outer, count, size, inner, perElement }) => {
      writer.dense(out, a, index);
      addon.lookup(outer, count, size, inner, perElement ? 1 : 0);
    },
    scatterAdd: (out, a, index, { outer, count, size, inner, perElement }) => {
      writer.dense(out, a, index);
      addon.scatterAdd(outer, count, size, inner, perElement ? 1 : 0);
    },
    cumsum: (out, a, outer, size, inner, reverse) => {
      writer.dense(out, a);
      addon.cumsum(outer, size, inner, reverse ? 1 : 0);
    },
    sort: (values, indices, a, rows, cols, count, descending) => {
      writer.dense(values, indices, a);
      addon.sort(rows, cols, count, descending ? 1 : 0);
    },
    triangle: (out, a, batch, rows, cols, diagonal, upper) => {
      writer.dense(out, a);
      addon.triangle(batch, rows, cols, diagonal, upper ? 1 : 0);
    },

    cuda: cudaControl(addon),
    linear: (out, ...rest) => (out.memory.device === 'cpu' ? onHost : onDevices).linear(out, ...rest),
    linearGrad: (grad, ...rest) =>
      (grad.memory.device === 'cpu' ? onHost : onDevices).linearGrad(grad, ...rest),
    ...layerKernels(addon, writer),
    ...lossKernels(addon),
    ...nnKernels(addon),
    ...optimizerKernels(addon, writer),
  };
  const [onHost, onDevices] = [linearKernels(addon), deviceLinear(addon, kernels)];
  return kernels;
}

/**
 * Loads the addon into this thread. RINGWISE_CPU=baseline|avx2|avx512 caps the instruction set, of all kernels of
 * the thread; otherwise it is the best of the CPU. Throws ERR_TENSOR_KERNELS with all places where it looked.
 */
export function loadNativeKernels(): Kernels {
  const wanted = process.env.RINGWISE_CPU || 'avx512';
  const cap = cpuLevels.indexOf(wanted);
  if (cap < 0) throw unknownCpuLevel(wanted, cpuLevels);
  const addon = loadAddon();
  addon.useCpu(cap);
  return kernelsOf(addon);
}

/** What CUDA devices there are, and why there are none. Loads the addon and, at the first call, the driver. */
export const cudaInfo = (): CudaInfo => cudaInfoOf(loadAddon());
export type { CudaDevice, CudaInfo, CudaLibrary, CudaMemoryUse } from './addon.ts';
