// Devices: the host, or a CUDA device by its number.
import { badDevice, badTarget } from '../errors.ts';

/** The full name of a device, as in `tensor.device`. */
export type Device = 'cpu' | `cuda:${number}`;
/** The name of a device; 'cuda' is the first CUDA device. */
export type DeviceName = Device | 'cuda';

/**
 * Returns the device of a name: 'cpu', 'cuda' (the first one) or 'cuda:N'. Does not check that it exists; the
 * first use does. `op` names a function that takes a dtype or a device, for its error message.
 */
export function deviceOf(name: string, op?: string): Device {
  if (name === 'cpu') return 'cpu';
  if (name === 'cuda') return 'cuda:0';
  if (typeof name === 'string' && /^cuda:(0|[1-9]\d{0,2})$/.test(name)) return name as Device;
  throw op === undefined ? badDevice(name) : badTarget(op, name);
}

/** Returns the number of a CUDA device. */
export const cudaIndex = (device: Device): number => Number(device.slice(5));
