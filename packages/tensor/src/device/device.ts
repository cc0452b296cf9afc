// Where memory lies and who computes: the host, or a CUDA device by its number.
import { badDevice, badTarget } from '../errors.ts';

export type Device = 'cpu' | `cuda:${number}`;
/** 'cuda' is the first CUDA device. */
export type DeviceName = Device | 'cuda';

/**
 * The device of a name: 'cpu', 'cuda' (the first one) or 'cuda:N'. Whether it exists shows at first use.
 * `op`: the function that takes dtypes in the same place.
 */
export function deviceOf(name: string, op?: string): Device {
  if (name === 'cpu') return 'cpu';
  if (name === 'cuda') return 'cuda:0';
  if (/^cuda:(0|[1-9]\d{0,2})$/.test(name)) return name as Device;
  throw op === undefined ? badDevice(name) : badTarget(op, name);
}

/** The number of a CUDA device. */
export const cudaIndex = (device: Device): number => Number(device.slice(5));
