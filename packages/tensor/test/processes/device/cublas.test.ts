// Tests matrix products by cublasLt, and by our own kernel if that library is missing.
import { describe, expect, test } from 'vitest';
import { cudaInfo, setFloat32MatmulPrecision } from '../../../src/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { cudaDevice } from '../../support/cuda-device.ts';
import { runWithLibrary } from '../../support/with-libraries.ts';

const program = `
  const { compile, linear, manualSeed, matmul, randn, setFloat32MatmulPrecision } = rw;
  manualSeed(3);
  for (const dtype of ['float32', 'float64', 'float16', 'bfloat16']) {
    const random = (...shape) => randn(shape).to(dtype);
    check('plain', [random(5, 7), random(7, 3)], matmul);
    check('turned', [random(7, 5), random(3, 7)], (a, b) => matmul(a.t(), b.t()));
    check('left', [random(7, 5), random(7, 3)], (a, b) => matmul(a.t(), b));
    check('right', [random(5, 7), random(3, 7)], (a, b) => matmul(a, b.t()));
    check('parts', [random(9, 12), random(12, 8)], (a, b) =>
      matmul(a.narrow(1, 3, 6), b.narrow(0, 1, 6).narrow(1, 2, 5)));
    check('batch', [random(4, 5, 7), random(4, 7, 3)], matmul);
    check('batches', [random(2, 3, 5, 7), random(3, 7, 4)], matmul);
    check('stretched', [random(2, 1, 5, 7), random(3, 7, 4)], matmul);
    check('row', [random(7), random(7, 3)], matmul);
    check('linear', [random(6, 7), random(4, 7), random(4)], linear);
    check('gradients', [random(6, 7), random(4, 7), random(4)], (...leaves) => gradients(leaves, linear));
    for (const activation of ['relu', 'gelu', 'geluTanh'])
      for (const bias of [[], [random(8)]]) {
        const layer = (a, b, c = null) => linear(a, b, c, { activation });
        check(activation, [random(6, 7), random(8, 7), ...bias], layer);
        check('gradients of ' + activation, [random(6, 7), random(8, 7), ...bias], (...leaves) => gradients(leaves, layer));
      }
    check('gradients of batches', [random(2, 1, 5, 7), random(3, 7, 4)], (...leaves) => gradients(leaves, matmul));
  }
  const x = randn([8, 8]).to('cuda');
  const step = compile((given) => matmul(given, given));
  for (let i = 0; i < 4; i++) worst.push(['captured', 1e4 * step(x).sub(matmul(x, x)).abs().max().item()]);
  setFloat32MatmulPrecision('high');
  matmul(x, x).sum().item();
`;

describe.skipIf(cudaDevice === null)(`matrix products on ${cudaDevice?.name}`, () => {
  test('by the library, of all layouts and float types, in batches, added, captured', () => {
    const { worst, libraries } = runWithLibrary('RINGWISE_LIBCUBLASLT', undefined, program);
    expect(libraries[0]).toMatchObject({ name: 'cublasLt', reason: '' });
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1);
    expect(worst).toHaveLength(100);
  });

  test('by our own kernel if the library is missing; cudaInfo() says which path was tried', () => {
    const missing = '/nonexistent/libcublasLt.so.13';
    const { worst, libraries } = runWithLibrary('RINGWISE_LIBCUBLASLT', missing, program);
    expect(libraries[0]).toMatchObject({ name: 'cublasLt', version: '' });
    expect(libraries[0]!.reason).toMatch(/not found: \/nonexistent\/libcublasLt\.so\.13/);
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1);
  });

  const large = `
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push([code, message]));
    const [a, b] = [[64, 32768], [32768, 64]].map((shape) => rw.zeros(shape, { device: 'cuda' }));
    rw.matmul(a, b.narrow(1, 0, 32));
    await new Promise(setImmediate);
    worst.push(...warnings.splice(0).map(([, message]) => [message, NaN]));
    for (let i = 0; i < 2; i++) { rw.matmul(a, b); rw.linear(a, b.t()); }
    await new Promise(setImmediate);
    worst.push(...warnings);
  `;

  test('a large product without the library warns once, with the reason and what to do; a small one does not', () => {
    const { worst } = runWithLibrary('RINGWISE_LIBCUBLASLT', '/nonexistent/libcublasLt.so.13', large);
    expect(worst).toHaveLength(1);
    expect(worst[0]![0]).toBe('RINGWISE_SLOW_KERNELS');
    expect(worst[0]![1]).toMatch(
      /cuda:0 .*not found: \/nonexistent\/libcublasLt\.so\.13.*RINGWISE_LIBCUBLASLT/s,
    );
  });

  test('a large product by the library does not warn', () => {
    expect(runWithLibrary('RINGWISE_LIBCUBLASLT', undefined, large).worst).toEqual([]);
  });

  test('an unknown precision is refused', () => {
    expect(codeOf(() => setFloat32MatmulPrecision('low' as 'high'))).toBe('ERR_TENSOR_ARGUMENT');
    setFloat32MatmulPrecision('highest');
    expect(cudaInfo().libraries[0]!.name).toBe('cublasLt');
  });
});
