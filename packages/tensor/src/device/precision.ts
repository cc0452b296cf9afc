// How exact products of float32 are on devices that can trade it for speed.
import { deviceControl } from '../backends/index.ts';
import { badOption, shown } from '../errors.ts';

/** 'highest': float32 throughout. 'high': factors may be rounded to TF32, with 10 bits of fraction. */
export type MatmulPrecision = 'highest' | 'high';

/**
 * Of matrix products and convolutions of float32 on CUDA devices, for the process; 'highest' at first. What
 * was captured keeps what it was captured with. This package's own kernels are always exact.
 */
export function setFloat32MatmulPrecision(precision: MatmulPrecision): void {
  if (precision !== 'highest' && precision !== 'high')
    throw badOption('setFloat32MatmulPrecision', "'highest' or 'high'", shown(precision));
  deviceControl().allowTf32(precision === 'high');
}
