// Warns when a large product or convolution is computed on a device where cublasLt or cuDNN could not be loaded,
// because our own kernels take several times as long.
import { slowConvolutions, slowProducts } from '../../errors.ts';
import type { Kernels } from '../kernels.ts';
import type { Memory } from '../operands.ts';
import type { NativeAddon } from './addon.ts';

/** Number of multiply-adds from which a call is slow enough to matter: those of a product of 512 × 512 matrices. */
const leastCount = 2 ** 27;

type Convolution = 'conv2d' | 'conv2dGradInput' | 'conv2dGradWeight';
type Slow = Pick<Kernels, 'matmul' | 'linear' | Convolution>;

/** Returns a function that warns at its first large call for a device if `reasonOf` returns a reason. */
function warningOnce(reasonOf: () => string, text: (device: string, reason: string) => string) {
  let isChecked = false;
  return (count: number, { device }: Memory): void => {
    if (count < leastCount || isChecked || device === 'cpu') return;
    isChecked = true;
    const reason = reasonOf();
    if (reason !== '') process.emitWarning(text(device, reason), { code: 'RINGWISE_SLOW_KERNELS' });
  };
}

/**
 * Returns these kernels, with one warning per thread for products and one for convolutions. A small call costs a few
 * multiplications and one comparison more.
 */
export function warningOfSlowKernels(addon: NativeAddon, kernels: Slow): Slow {
  const checkProduct = warningOnce(() => addon.cudaWithoutCublas(), slowProducts);
  const checkConvolution = warningOnce(() => addon.cudaWithoutCudnn(), slowConvolutions);
  const countOf = ({ batch, groups, inChannels, outChannels, window }: Parameters<Kernels['conv2d']>[1]) => {
    const { outHeight, outWidth, kernelHeight, kernelWidth } = window;
    return batch * groups * outChannels * inChannels * outHeight * outWidth * kernelHeight * kernelWidth;
  };
  return {
    matmul: (shape, out, a, b, sizes) => {
      checkProduct(sizes.m * sizes.n * sizes.k, out.memory);
      kernels.matmul(shape, out, a, b, sizes);
    },
    linear: (operands, sizes) => {
      checkProduct(sizes.rows * sizes.outs * sizes.ins, operands.out.memory);
      kernels.linear(operands, sizes);
    },
    conv2d: (operands, sizes) => {
      checkConvolution(countOf(sizes), operands.out.memory);
      kernels.conv2d(operands, sizes);
    },
    conv2dGradInput: (operands, sizes) => {
      checkConvolution(countOf(sizes), operands.gradX.memory);
      kernels.conv2dGradInput(operands, sizes);
    },
    conv2dGradWeight: (operands, sizes) => {
      checkConvolution(countOf(sizes), operands.gradWeight.memory);
      kernels.conv2dGradWeight(operands, sizes);
    },
  };
}
