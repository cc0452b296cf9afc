// Tests convolutions, and attention of 16-bit types, by cuDNN (on the software device: a stand-in). Tests our own
// kernels where the library is missing or does not take the dtype.
import { describe, expect, test } from 'vitest';
import { cudaDevice } from '../../support/cuda-device.ts';
import { runWithLibrary } from '../../support/with-libraries.ts';

// runWithLibrary() defines rw, check(), gradients() and worst. Errors are fractions of the tolerance, so 1 is the
// limit.
const program = `
  const { compile, conv2d, manualSeed, randn, scaledDotProductAttention, selfAttention } = rw;
  manualSeed(5);
  for (const dtype of ['float32', 'float64', 'float16', 'bfloat16']) {
    const random = (...shape) => randn(shape).to(dtype);
    const given = [random(2, 4, 7, 6), random(6, 4, 3, 2), random(6)];
    check('convolution', given, conv2d);
    const options = { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 2 };
    const grouped = [random(2, 4, 7, 6), random(6, 2, 3, 2), random(6)];
    check('stride, padding, dilation, groups', grouped, (...leaves) => conv2d(...leaves, options));
    check('gradients', grouped, (...leaves) => gradients(leaves, (...all) => conv2d(...all, options)));
    const heads = () => random(2, 2, 9, 16);
    for (const causal of [false, true]) {
      const attend = (q, k, v) => scaledDotProductAttention(q, k, v, { causal });
      check('attention', [heads(), heads(), heads()], attend);
      check('gradients of attention', [heads(), heads(), heads()], (...leaves) => gradients(leaves, attend));
    }
    const packed = (qkv) => selfAttention(qkv, 2, { causal: true });
    check('packed', [random(2, 9, 96)], (...leaves) => gradients(leaves, packed));
  }
  const x = randn([2, 3, 8, 8]).to('cuda');
  const w = randn([4, 3, 3, 3]).to('cuda');
  const step = compile((image) => conv2d(image, w));
  // The tolerance is 1e-4.
  for (let i = 0; i < 4; i++) worst.push(['captured', 1e4 * step(x).sub(conv2d(x, w)).abs().max().item()]);
  const heads = randn([1, 2, 40, 64]).to('cuda').to('bfloat16');
  const attend = (a) => scaledDotProductAttention(a, a, a, { causal: true, dropout: 0.3 });
  const captured = compile(attend);
  const sums = (run) => {
    manualSeed(8);
    return Array.from({ length: 5 }, () => run(heads).to('float32').abs().sum().item());
  };
  const [eager, replayed] = [sums(attend), sums(captured)];
  for (const [i, sum] of eager.entries()) worst.push(['dropout of captured attention', Math.abs(sum - replayed[i])]);
  worst.push(['replays that draw the same numbers', replayed.length - new Set(replayed).size]);
`;

describe.skipIf(cudaDevice === null)(`convolution and attention on ${cudaDevice?.name}`, () => {
  test('with the library loaded, all float types, with gradients, captured', () => {
    const { worst, libraries } = runWithLibrary('RINGWISE_LIBCUDNN', undefined, program);
    expect(libraries[1]).toMatchObject({ name: 'cuDNN', reason: '' });
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1);
    expect(worst).toHaveLength(42);
  });

  test('by our own kernels if the library is missing; cudaInfo() says which path was tried', () => {
    const { worst, libraries } = runWithLibrary('RINGWISE_LIBCUDNN', '/nonexistent/libcudnn.so.9', program);
    expect(libraries[1]).toMatchObject({ name: 'cuDNN', version: '' });
    expect(libraries[1]!.reason).toMatch(/not found: \/nonexistent\/libcudnn\.so\.9/);
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1);
  });

  const large = `
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push([code, message]));
    const x = rw.zeros([2, 64, 65, 65], { device: 'cuda' });
    const wide = rw.zeros([64, 64, 2, 2], { device: 'cuda' });
    rw.conv2d(x, wide.narrow(0, 0, 8).contiguous());
    await new Promise(setImmediate);
    worst.push(...warnings.splice(0).map(([, message]) => [message, NaN]));
    for (let i = 0; i < 2; i++) rw.conv2d(x, wide);
    await new Promise(setImmediate);
    worst.push(...warnings);
  `;

  test('a large convolution without the library warns once, with the reason and what to do; a small one does not', () => {
    const { worst } = runWithLibrary('RINGWISE_LIBCUDNN', '/nonexistent/libcudnn.so.9', large);
    expect(worst).toHaveLength(1);
    expect(worst[0]![0]).toBe('RINGWISE_SLOW_KERNELS');
    expect(worst[0]![1]).toMatch(/cuda:0 .*not found: \/nonexistent\/libcudnn\.so\.9.*RINGWISE_LIBCUDNN/s);
  });

  test('a large convolution by the library does not warn', () => {
    expect(runWithLibrary('RINGWISE_LIBCUDNN', undefined, large).worst).toEqual([]);
  });
});
