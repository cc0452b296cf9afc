// Where memory lies and who computes: the host, or a CUDA device by its number.
import { badDevice } from './errors.ts';

export type Device = 'cpu' | `cuda:${number}`;
/** 'cuda' is the first CUDA device. */
export type DeviceName = Device | 'cuda';

/** The device of a name: 'cpu', 'cuda' (the first one) or 'cuda:N'. Whether it exists shows at first use. */
export function deviceOf(name: string): Device {
  if (name === 'cpu') return 'cpu';
  if (name === 'cuda') return 'cuda:0';
  if (/^cuda:(0|[1-9]\d{0,2})$/.test(name)) return name as Device;
  throw badDevice(name);
}

/** The number of a CUDA device. */
export const cudaIndex = (device: Device): number => Number(device.slice(5));
