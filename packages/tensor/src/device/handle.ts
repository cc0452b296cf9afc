// Exchanges tensors with other libraries without a copy, like DLPack but in JavaScript (core/protocol.ts).
//
// The lender keeps the memory until the borrower releases it. On a CUDA device, the release does not wait for
// the device: it is sent when the lender's stream is ordered after all work of the borrower.
import { kernels } from '../backends/index.ts';
import type { Loan } from '../backends/kernels.ts';
import { dtypeInfo } from '../core/dtype.ts';
import { isDense } from '../core/layout.ts';
import { adoptMemory, type Storage } from '../core/memory/storage.ts';
import type { TensorHandle } from '../core/protocol.ts';
import { checkedShape, type Shape, stridesOf } from '../core/shape.ts';
import { created, type Tensor } from '../core/tensor.ts';
import { addressOf, streamOf } from '../core/tensor-core.ts';
import { badHandle, gradientInHandle, outsideHandle, spentHandle, unknownDtype } from '../errors.ts';
import { refuseWhileCapturing } from './capture.ts';
import { cudaIndex, type Device, deviceOf } from './device.ts';

/**
 * Handles that fromHandle() must refuse: one with a `release` that has already been used, so that its memory belongs to
 * a borrower, or one that has been released.
 */
const spent = new WeakSet<TensorHandle>();

/** Releases lent memory when the borrower's owner object has been collected without a call of release. */
const forgotten = new FinalizationRegistry<Storage>((storage) => storage.release());

/** Lends the memory of a tensor to another library. It is kept until the handle is released. */
export function handleOf(tensor: Tensor): TensorHandle {
  refuseWhileCapturing('handle()');
  if (tensor.requiresGrad) throw gradientInHandle(tensor.shape);
  const { dtype, shape, strides, device, storage, offset } = tensor;
  const where =
    device === 'cpu'
      ? ({ device: { kind: 'cpu', index: 0 } } as const)
      : ({ device: { kind: 'cuda', index: cudaIndex(device) }, stream: streamOf(device) } as const);
  const owner = {};
  let isLent = true;
  const handle: TensorHandle = {
    dtype,
    shape,
    strides,
    ...where,
    address: addressOf(tensor),
    count: storage.memory.count - offset,
    owner,
    release: () => {
      spent.add(handle);
      if (!isLent) return;
      isLent = false;
      forgotten.unregister(owner);
      storage.release();
    },
  };
  forgotten.register(owner, storage.retain(), owner);
  return handle;
}

/**
 * Makes a tensor over the memory of another library, on the CPU or a CUDA device, without a copy: writes of one side
 * are visible to the other. Calls the owner's `release` when the memory is no longer used. On a device, later work of
 * the current stream runs after the work already on the handle's stream. A handle with `release` can be used once.
 */
export function fromHandle(handle: TensorHandle): Tensor {
  refuseWhileCapturing('fromHandle');
  if (typeof handle !== 'object' || handle === null)
    throw badHandle('a handle', '{ dtype, shape, device, address, owner }', handle);
  if (spent.has(handle)) throw spentHandle();
  const { release } = handle;
  if (release !== undefined && typeof release !== 'function')
    throw badHandle('release', 'to be a function', release);
  const { loan, shape, strides } = checked(handle);
  // Called in a microtask, so that an error of the caller's function is not thrown into the code that frees memory.
  const told = release === undefined ? null : () => queueMicrotask(() => release.call(handle));
  const memory = kernels().borrow({ ...loan, release: told });
  if (release !== undefined) spent.add(handle);
  const layout = { shape, strides, offset: 0 };
  const strided = isDense(layout) ? undefined : { memory, offset: 0, strides };
  return created(adoptMemory(memory), shape, strided);
}

/** Checks a handle and returns its fields. Throws if its shape and strides exceed its memory. */
function checked(handle: TensorHandle): {
  readonly loan: Omit<Loan, 'release'>;
  readonly shape: Shape;
  readonly strides: readonly number[];
} {
  const { dtype, address, owner, stream = 0n } = handle;
  if (!Object.hasOwn(dtypeInfo, dtype)) throw unknownDtype('fromHandle', dtype);
  const shape = checkedShape('fromHandle', handle.shape);
  const strides = checkedStrides(handle.strides ?? stridesOf(shape), shape);
  const count = reachOf(shape, strides);
  const own = handle.count ?? count;
  if (!isSize(own)) throw badHandle('count', 'to be an integer ≥ 0', own);
  if (count > own) throw outsideHandle(shape, strides, count, own);
  const { bytes } = dtypeInfo[dtype];
  if (typeof address !== 'bigint' || address < 0n || address % BigInt(bytes) !== 0n || address >= 1n << 64n)
    throw badHandle('address', `to be a bigint that is a multiple of ${bytes}`, address);
  if (address === 0n && count > 0) throw badHandle('address', 'not to be 0', address);
  if (typeof owner !== 'object' || owner === null)
    throw badHandle('owner', 'to be an object that keeps the memory', owner);
  if (typeof stream !== 'bigint') throw badHandle('stream', 'to be a bigint', stream);
  const device = checkedDevice(handle);
  return {
    loan: { dtype, count, device, address, owner, stream: device === 'cpu' ? null : stream },
    shape,
    strides,
  };
}

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function checkedStrides(strides: readonly number[], shape: Shape): readonly number[] {
  const isFitting = Array.isArray(strides) && strides.length === shape.length && strides.every(isSize);
  if (!isFitting) throw badHandle('strides', `to be ${shape.length} integers ≥ 0`, strides);
  return strides;
}

/** Returns the number of elements from the first to the last one that shape and strides address, both included. */
function reachOf(shape: Shape, strides: readonly number[]): number {
  let reach = 1;
  for (let d = 0; d < shape.length; d++) {
    if (shape[d] === 0) return 0;
    reach += (shape[d]! - 1) * strides[d]!;
  }
  return reach;
}

function checkedDevice({ device }: TensorHandle): Device {
  const { kind, index } = device ?? {};
  if (kind === 'cpu' && index === 0) return 'cpu';
  if (kind !== 'cuda')
    throw badHandle('device', "to be { kind: 'cpu' | 'cuda', index }", device, JSON.stringify(device));
  return deviceOf(`cuda:${index}`);
}
