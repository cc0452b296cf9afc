// The precision of float32 products on CUDA devices, which can trade it for speed.
import { deviceControl } from '../backends/index.ts';
import { badOption, shown } from '../errors.ts';

/** 'highest': float32 throughout. 'high': factors may be rounded to TF32, which has 10 bits of fraction. */
export type MatmulPrecision = 'highest' | 'high';

/**
 * Sets the precision of float32 matrix products and convolutions on CUDA devices, for the process; initially
 * 'highest'. Captured steps keep the precision of their capture. 'high' has an effect only where cublasLt or cuDNN
 * computes: this package's own kernels always use float32. Throws ERR_TENSOR_DEVICE with the reference kernels.
 */
export function setFloat32MatmulPrecision(precision: MatmulPrecision): void {
  if (precision !== 'highest' && precision !== 'high')
    throw badOption('setFloat32MatmulPrecision', "'highest' or 'high'", shown(precision));
  deviceControl().allowTf32(precision === 'high');
}
