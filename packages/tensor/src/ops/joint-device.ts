// Finds the device of an operation: all its tensors are on one device. Numbers have none.

import type { Operand } from '../core/tensor.ts';
import type { Device } from '../device/device.ts';
import { differentDevices } from '../errors.ts';

/** Returns the device of the tensors among the operands, 'cpu' if all are numbers. Throws if devices differ. */
export function jointDevice(
  op: string,
  a: Operand,
  b: Operand | null = null,
  c: Operand | null = null,
  d: Operand | null = null,
): Device {
  let device = typeof a === 'number' ? null : a.device;
  if (b !== null && typeof b !== 'number') device = same(op, device, b.device);
  if (c !== null && typeof c !== 'number') device = same(op, device, c.device);
  if (d !== null && typeof d !== 'number') device = same(op, device, d.device);
  return device ?? 'cpu';
}

function same(op: string, a: Device | null, b: Device): Device {
  if (a !== null && a !== b) throw differentDevices(op, a, b);
  return b;
}
