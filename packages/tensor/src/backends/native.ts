// The kernels in C++ (native/tensor), called with integer handles and plain numbers. Every worker thread that uses
// tensors has its own instance of the addon.
import { markAsUntransferable } from 'node:worker_threads';
import { unknownCpuLevel } from '../errors.ts';
import type { BinaryOp, DType, HostArray, Kernels, Memory, ReduceOp, UnaryOp } from '../kernels.ts';
import { type CudaInfo, loadAddon, type NativeAddon } from './native-addon.ts';

// Numbered as in native/tensor/kernels.h.
const unaries = numbered<UnaryOp>(['neg', 'exp', 'log', 'sqrt', 'square', 'abs', 'relu', 'sigmoid', 'tanh']);
const binaries = numbered<BinaryOp>([
  ...(['add', 'sub', 'mul', 'div', 'max', 'min', 'eq', 'lt'] as const),
  ...(['reluGrad', 'sigmoidGrad', 'tanhGrad'] as const),
]);
const reductions = numbered<ReduceOp>(['sum', 'max']);
const cpuLevels = ['baseline', 'avx2', 'avx512'];

function numbered<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name, i) => [name, i])) as Record<Name, number>;
}

const arrays = { float32: Float32Array, int32: Int32Array, int64: BigInt64Array };

const dtypeOf = (array: HostArray): DType =>
  array instanceof Float32Array ? 'float32' : array instanceof Int32Array ? 'int32' : 'int64';

function adopt(addon: NativeAddon, host: HostArray): Memory {
  return { dtype: dtypeOf(host), count: host.length, handle: addon.adopt(host), host };
}

/** Space to move the first element to a multiple of 64 bytes. */
const alignmentBytes = 64;

function alloc(addon: NativeAddon, dtype: DType, count: number): Memory {
  const array = arrays[dtype];
  const buffer = new ArrayBuffer(count * array.BYTES_PER_ELEMENT + alignmentBytes);
  // A transfer would take the memory away from under its handle.
  markAsUntransferable(buffer);
  return adopt(addon, new array(buffer, addon.padding(buffer), count));
}

/** Writes `values` behind each other from `at` on; returns the end. */
function put(scratch: Float64Array, at: number, values: readonly number[]): number {
  for (let i = 0; i < values.length; i++) scratch[at + i] = values[i]!;
  return at + values.length;
}

function kernelsOf(addon: NativeAddon): Kernels {
  const { scratch } = addon;
  return {
    name: 'native',
    alloc: (dtype, count) => alloc(addon, dtype, count),
    adopt: (array) => adopt(addon, array),
    free: (memory) => addon.free(memory.handle),

    fill: (out, value) => addon.fill(out.handle, value),
    copy: (out, a) => addon.copy(out.handle, a.handle),
    strided: (out, a, shape, strides, offset) => {
      scratch[0] = shape.length;
      put(scratch, put(scratch, 1, shape), strides);
      addon.strided(out.handle, a.handle, offset);
    },

    unary: (op, out, a) => addon.unary(unaries[op], out.handle, a.handle),
    binary: (op, out, a, b, shape, aStrides, bStrides) => {
      scratch[0] = shape.length;
      put(scratch, put(scratch, put(scratch, 1, shape), aStrides), bStrides);
      addon.binary(binaries[op], out.handle, a.handle, b.handle);
    },
    affine: (out, a, scale, shift) => addon.affine(out.handle, a.handle, scale, shift),
    axpy: (out, a, scale) => addon.axpy(out.handle, a.handle, scale),

    reduce: (op, out, a, outer, size, inner) =>
      addon.reduce(reductions[op], out.handle, a.handle, outer, size, inner),
    argmax: (out, a, outer, size, inner) => addon.argmax(out.handle, a.handle, outer, size, inner),
    matmul: (out, a, b, m, n, k, transA, transB, accumulate) =>
      addon.matmul(
        out.handle,
        a.handle,
        b.handle,
        m,
        n,
        k,
        (transA ? 1 : 0) | (transB ? 2 : 0) | (accumulate ? 4 : 0),
      ),

    logSoftmax: (out, a, rows, cols) => addon.logSoftmax(out.handle, a.handle, rows, cols),
    logSoftmaxGrad: (gradIn, gradOut, out, rows, cols) =>
      addon.logSoftmaxGrad(gradIn.handle, gradOut.handle, out.handle, rows, cols),
    nll: (losses, logProbs, labels, rows, cols) =>
      addon.nll(losses.handle, logProbs.handle, labels.handle, rows, cols),
    nllGrad: (gradIn, gradLosses, labels, rows, cols) =>
      addon.nllGrad(gradIn.handle, gradLosses.handle, labels.handle, rows, cols),

    sgd: (param, grad, velocity, { lr, momentum, dampening, weightDecay, nesterov, first }) =>
      addon.sgd(
        param.handle,
        grad.handle,
        velocity?.handle ?? 0,
        lr,
        momentum,
        dampening,
        weightDecay,
        (nesterov ? 1 : 0) | (first ? 2 : 0),
      ),
  };
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
export const cudaInfo = (): CudaInfo => loadAddon().cudaInfo();
export type { CudaDevice, CudaInfo } from './native-addon.ts';
