// Products by cublasLt, beside those of the own kernel. On the software device the library's functions run on the CPU;
// there this shows that layouts, transposes and batches are said rightly, and not how the library computes.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { cudaInfo, setFloat32MatmulPrecision } from '../src/index.ts';
import { codeOf } from './code-of.ts';
import { cudaDevice } from './cuda-device.ts';

const program = `
  import { compile, cudaInfo, linear, manualSeed, matmul, memory, randn, setFloat32MatmulPrecision } from '../src/index.ts';
  manualSeed(3);
  const worst = [];
  const check = (name, at, bt, product) => {
    const near = product(at, bt).dataSync();
    const far = product(at.to('cuda'), bt.to('cuda')).to('cpu').dataSync();
    worst.push([name, Math.max(...near.map((x, i) => Math.abs(x - far[i])))]);
  };
  for (const dtype of ['float32', 'float64']) {
    const random = (...shape) => randn(shape).to(dtype);
    check(dtype, random(5, 7), random(7, 3), matmul);
    check('turned', random(7, 5), random(3, 7), (a, b) => matmul(a.t(), b.t()));
    check('left', random(7, 5), random(7, 3), (a, b) => matmul(a.t(), b));
    check('right', random(5, 7), random(3, 7), (a, b) => matmul(a, b.t()));
    check('parts', random(9, 12), random(12, 8), (a, b) => matmul(a.narrow(1, 3, 6), b.narrow(0, 1, 6).narrow(1, 2, 5)));
    check('batch', random(4, 5, 7), random(4, 7, 3), matmul);
    check('batches', random(2, 3, 5, 7), random(3, 7, 4), matmul);
    check('stretched', random(2, 1, 5, 7), random(3, 7, 4), matmul);
    check('row', random(7), random(7, 3), matmul);
    check('linear', random(6, 7), random(4, 7), (x, w) => linear(x, w));
    check('gradient', random(6, 7), random(4, 7), (x, w) => {
      const a = x.detach(), b = w.detach();
      a.requiresGrad = b.requiresGrad = true;
      for (let i = 0; i < 2; i++) linear(a, b).square().sum().backward();
      return b.grad;
    });
  }
  const x = randn([8, 8]).to('cuda');
  const step = compile((given) => matmul(given, given));
  for (let i = 0; i < 4; i++) worst.push(['captured', step(x).sub(matmul(x, x)).abs().max().item()]);
  setFloat32MatmulPrecision('high');
  matmul(x, x).sum().item();
  process.stdout.write(JSON.stringify({ worst, libraries: cudaInfo().libraries }));
`;

interface Report {
  readonly worst: readonly [string, number][];
  readonly libraries: readonly { readonly name: string; readonly version: string; readonly reason: string }[];
}

function run(library: string | undefined): Report {
  const env = { ...process.env };
  if (library !== undefined) env.RINGWISE_LIBCUBLASLT = library;
  const args = ['--import', 'tsx', '--input-type=module', '-e', program];
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  return JSON.parse(execFileSync(process.execPath, args, { env, cwd, encoding: 'utf8', timeout: 60_000 }));
}

const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;

describe.skipIf(cudaDevice === null)(`matrix products on ${cudaDevice?.name}`, () => {
  test('by the library, of all layouts, in batches, added, captured', () => {
    const { worst, libraries } = run(isSoftware ? process.env.RINGWISE_LIBCUDA : undefined);
    expect(libraries[0]).toMatchObject({ name: 'cublasLt', reason: '' });
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1e-4);
    expect(worst).toHaveLength(26);
  });

  test('by the own kernel where the library is missing, which is told with its path', () => {
    const { worst, libraries } = run('/nonexistent/libcublasLt.so.13');
    expect(libraries[0]).toMatchObject({ name: 'cublasLt', version: '' });
    expect(libraries[0]!.reason).toMatch(/not found: \/nonexistent\/libcublasLt\.so\.13/);
    for (const [name, error] of worst) expect(error, name).toBeLessThan(1e-4);
  });

  test('a precision that does not exist is a sentence', () => {
    expect(codeOf(() => setFloat32MatmulPrecision('low' as 'high'))).toBe('ERR_TENSOR_ARGUMENT');
    setFloat32MatmulPrecision('highest');
    expect(cudaInfo().libraries[0]!.name).toBe('cublasLt');
  });
});
