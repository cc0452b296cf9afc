// Copies elements to other memory: of another dtype, on another device, or the same but dense. Between two CUDA devices
// they go through host memory.
import { deviceControl, kernels } from '../../backends/index.ts';
import type { Input, Strided } from '../../backends/operands.ts';
import type { Device } from '../../device/device.ts';
import { type DType, dtypeInfo } from '../dtype.ts';
import { countOf, type Shape } from '../shape.ts';
import { allocate, allocatePinned, type Storage } from './storage.ts';

/**
 * Returns a dense copy with one reference. The device of `from` converts. With `isNonBlocking`, a copy between host and
 * device is only started, and a copy to the host is in pinned memory.
 */
export function transferred(
  from: Strided,
  shape: Shape,
  dtype: DType,
  device: Device,
  isNonBlocking = false,
): Storage {
  const count = countOf(shape);
  const source = from.memory.device;
  if (source === device) {
    const copy = allocate(dtype, count, device);
    kernels().copy(shape, copy.dense, from);
    return copy;
  }
  const isDense = from.strides === null && from.memory.dtype === dtype;
  const dense = isDense ? null : transferred(from, shape, dtype, source);
  const { memory, offset } = dense === null ? from : dense.dense;
  const isStarted = isNonBlocking && device === 'cpu';
  const target = isStarted ? allocatePinned(dtype, count) : allocate(dtype, count, device);
  if (source === 'cpu') {
    const array = memory.host.subarray(offset, offset + count);
    if (isNonBlocking) deviceControl().startWrite(target.memory, 0, array);
    else kernels().write(target.memory, 0, array);
  } else if (isStarted) deviceControl().startRead(memory, offset, target.memory.host);
  else if (device === 'cpu') kernels().read(memory, offset, target.memory.host);
  else {
    const host = new dtypeInfo[dtype].array(count);
    kernels().read(memory, offset, host);
    kernels().write(target.memory, 0, host);
  }
  dense?.release();
  return target;
}

/** Overwrites `into`, of `shape`, with `from`. Dtypes and devices may differ; the device of `into` converts. */
export function copyInto(into: Strided, shape: Shape, from: Input): void {
  if (typeof from === 'number' || from.memory.device === into.memory.device) {
    kernels().copy(shape, into, from);
    return;
  }
  const near = transferred(from, shape, from.memory.dtype, into.memory.device);
  kernels().copy(shape, into, near.dense);
  near.release();
}
