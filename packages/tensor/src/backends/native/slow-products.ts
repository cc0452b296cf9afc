// Warns when a large product is computed on a device where cublasLt could not be loaded, because our own kernels take
// several times as long.
import { slowProducts } from '../../errors.ts';
import type { Kernels } from '../kernels.ts';
import type { Memory } from '../operands.ts';
import type { NativeAddon } from './addon.ts';

/** Multiply-adds of a product that takes long enough to matter: those of three matrices of 512 × 512. */
const leastCount = 2 ** 27;

/** Returns these kernels, with products that warn once per thread. A small product costs one comparison more. */
export function warningOfSlowProducts(
  addon: NativeAddon,
  kernels: Pick<Kernels, 'matmul' | 'linear'>,
): Pick<Kernels, 'matmul' | 'linear'> {
  let isChecked = false;
  const check = (count: number, { device }: Memory): void => {
    if (count < leastCount || isChecked || device === 'cpu') return;
    isChecked = true;
    const reason = addon.cudaWithoutCublas();
    if (reason !== '') process.emitWarning(slowProducts(device, reason), { code: 'RINGWISE_SLOW_KERNELS' });
  };
  return {
    matmul: (shape, out, a, b, sizes) => {
      check(sizes.m * sizes.n * sizes.k, out.memory);
      kernels.matmul(shape, out, a, b, sizes);
    },
    linear: (operands, sizes) => {
      check(sizes.rows * sizes.outs * sizes.ins, operands.out.memory);
      kernels.linear(operands, sizes);
    },
  };
}
