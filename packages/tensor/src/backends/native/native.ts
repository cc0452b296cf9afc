// The kernels in C++ (native/tensor), called with integer handles and plain numbers. Every thread that uses tensors,
// the main one or a worker, has its own instance of the addon.

import { markAsUntransferable } from 'node:worker_threads';
import { type DType, dtypeInfo, type HostArray } from '../../core/dtype.ts';
import { refuseWhileCapturing } from '../../device/capture.ts';
import { cudaIndex } from '../../device/device.ts';
import { fromAddon, unknownCpuLevel } from '../../errors.ts';
import { denseKernels, walkKernels } from '../declarations/declarations.ts';
import { type MapOp, mapOps, reduceOps } from '../declarations/names.ts';
import type { DenseName, Kernels, Loan, WalkName } from '../kernels.ts';
import type { Input, Memory, Strided } from '../operands.ts';
import { repeatWithRoom } from '../shortage.ts';
import { type CudaInfo, loadAddon, type NativeAddon } from './addon.ts';
import { allocCuda, borrowCuda, cudaControl, cudaInfoOf, onDevice } from './cuda.ts';
import { nativeDenseKernels } from './dense.ts';
import { optimizerKernels } from './optimizer.ts';
import { warningOfSlowKernels } from './slow-kernels.ts';
import { Writer } from './writer.ts';

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
  // No mark: structuredClone() does not transfer a buffer over such memory, and Node 24 cannot detach a marked buffer
  // when the loan ends: it ends the process.
  const buffer = onDevice(() => addon.bufferAt(address, count * bytes));
  const host = new array(buffer, 0, count);
  return { dtype, count, handle: addon.borrow(host, code, owner, release), device: 'cpu', host };
}

const isDense = (operand: Input): boolean => typeof operand === 'number' || operand.strides === null;

/**
 * Returns the addon with kernels that throw errors of this package. A kernel that finds no memory for its scratch has
 * changed nothing that it reads, so it is called again when there is room; its operands are still in `scratch`.
 */
function withErrors(addon: NativeAddon): NativeAddon {
  const recover = (error: unknown, run: () => void): void => {
    const failure = fromAddon(error);
    if (failure.code !== 'ERR_TENSOR_MEMORY') throw failure;
    repeatWithRoom(failure, () => onDevice(run));
  };
  const withScratch = [...Object.keys(walkKernels), ...Object.keys(denseKernels)] as (WalkName | DenseName)[];
  const calls = withScratch.map((name) => {
    const run = addon[name];
    const call = (): void => {
      try {
        run();
      } catch (error) {
        recover(error, run);
      }
    };
    return [name, call];
  });
  const withTable = (['optimize', 'totalNorm', 'scale'] as const).map((name) => {
    const run = addon[name] as (...given: unknown[]) => void;
    const call = (...given: unknown[]): void => {
      try {
        run(...given);
      } catch (error) {
        recover(error, () => run(...given));
      }
    };
    return [name, call];
  });
  return Object.assign(Object.create(addon), Object.fromEntries([...calls, ...withTable])) as NativeAddon;
}

function kernelsOf(addon: NativeAddon): Kernels {
  const writer = new Writer(addon.scratch);
  /** Writes the shape and the operands of a walk. Returns the number of operands. */
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
  const matmul: Kernels['matmul'] = (
    shape,
    out,
    a,
    b,
    { m, n, k, aStep, bStep, transA, transB, accumulate },
  ) => {
    walk(shape, out, a, b, undefined);
    writer.number(0, m);
    writer.number(1, n);
    writer.number(2, k);
    writer.number(3, aStep);
    writer.number(4, bStep);
    writer.number(5, transA ? 1 : 0);
    writer.number(6, transB ? 1 : 0);
    writer.number(7, accumulate ? 1 : 0);
    addon.matmul();
  };
  const dense = nativeDenseKernels(addon);
  return {
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
    cuda: cudaControl(addon),
    ...dense,
    ...warningOfSlowKernels(addon, { ...dense, matmul }),
    ...optimizerKernels(addon, writer),
  };
}

/**
 * Loads the addon into this thread. RINGWISE_CPU=baseline|avx2|avx512 caps the instruction set of the thread's CPU
 * kernels; without it they use the best one that the CPU has. Throws ERR_TENSOR_KERNELS if the addon does not load,
 * with all paths that were tried, or if RINGWISE_CPU has another value.
 */
export function loadNativeKernels(): Kernels {
  const wanted = process.env.RINGWISE_CPU || 'avx512';
  const cap = cpuLevels.indexOf(wanted);
  if (cap < 0) throw unknownCpuLevel(wanted, cpuLevels);
  const addon = loadAddon();
  addon.useCpu(cap);
  return kernelsOf(withErrors(addon));
}

/**
 * Returns the CUDA devices, or why there are none. Loads the addon and, at the first call, the driver. Throws
 * ERR_TENSOR_KERNELS if the addon does not load.
 */
export const cudaInfo = (): CudaInfo => cudaInfoOf(loadAddon());
export type { CudaDevice, CudaInfo, CudaLibrary, CudaMemoryUse } from './addon.ts';
