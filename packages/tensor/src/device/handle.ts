// Tensors of other libraries, and tensors for them, without a copy: DLPack's exchange in JavaScript
// (protocol.ts).
//
// Whoever lends memory keeps it until it is told that nobody works with it any more. On a CUDA device that
// word does not wait for the device: it is given when the lender's stream comes after all work of the
// borrower.
import { kernels } from '../backends/index.ts';
import type { Loan } from '../backends/kernels.ts';
import { dtypeInfo } from '../core/dtype.ts';
import { isDense } from '../core/layout.ts';
import type { TensorHandle } from '../core/protocol.ts';
import { checkedShape, type Shape, stridesOf } from '../core/shape.ts';
import { adoptMemory, type Storage } from '../core/storage.ts';
import { created, type Tensor } from '../core/tensor.ts';
import { addressOf, streamOf } from '../core/tensor-core.ts';
import { badHandle, gradientInHandle, outsideHandle, spentHandle, unknownDtype } from '../errors.ts';
import { refuseWhileCapturing } from './capture.ts';
import { cudaIndex, type Device, deviceOf } from './device.ts';

/** Handles that were taken or released: their memory is somebody's who will release it, or gone. */
const spent = new WeakSet<TensorHandle>();

/** What is lent, until the borrower forgets the owner without a word. */
const forgotten = new FinalizationRegistry<Storage>((storage) => storage.release());

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
 * A tensor over the memory of another library, on the CPU or a CUDA device, without a copy: writes on either
 * side are seen by the other. When its memory is not used any more, the owner's `release` is called. On a
 * device, work of the stream that is current now comes after what the handle's stream has been given.
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
  // Afterwards: an error of the caller's function is no error of whatever frees memory.
  const told = release === undefined ? null : () => queueMicrotask(() => release.call(handle));
  const memory = kernels().borrow({ ...loan, release: told });
  if (release !== undefined) spent.add(handle);
  const layout = { shape, strides, offset: 0 };
  const place = isDense(layout) ? undefined : { memory, offset: 0, strides };
  return created(adoptMemory(memory), shape, place);
}

/** What a handle says, once nothing of it can lead outside of its memory. */
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
  if (!isFitting) throw badHandle('strides', `to be ${shape.length} integers ≥ 0`, `[${strides}]`);
  return strides;
}

/** Elements from the first to the last that shape and strides name. */
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
    throw badHandle('device', "to be { kind: 'cpu' | 'cuda', index }", JSON.stringify(device));
  return deviceOf(`cuda:${index}`);
}
