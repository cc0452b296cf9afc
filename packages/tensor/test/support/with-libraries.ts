// Programs that run in a process of their own, because a library is opened once. On the software device the
// vendor's libraries are its own functions of their names: this shows that what is asked of them is said
// rightly, and not how they compute.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;

/**
 * Defines check(name, inputs, run): notes the largest difference between CPU and CUDA, relative to what a
 * dtype allows.
 */
const prelude = `
  import * as rw from '../../src/index.ts';
  const worst = [];
  const allowed = { float32: 1e-4, float64: 1e-4, float16: 4e-3, bfloat16: 3e-2 };
  const check = (name, inputs, run) => {
    const [near, far] = ['cpu', 'cuda'].map((where) => {
      const results = run(...inputs.map((input) => input.detach().to(where).detach()));
      return [results].flat().map((result) => Array.from(result.to('cpu').to('float64').dataSync()));
    });
    const errors = near.flatMap((part, p) => part.map((x, i) => Math.abs(x - far[p][i]) / Math.max(1, Math.abs(x))));
    worst.push([inputs[0].dtype + ' ' + name, Math.max(...errors) / allowed[inputs[0].dtype]]);
  };
  /** Gradients of leaves after two passes through the sum of squares. */
  const gradients = (leaves, run) => {
    for (const leaf of leaves) leaf.requiresGrad = true;
    for (let i = 0; i < 2; i++) run(...leaves).to('float32').square().mean().backward();
    return leaves.map((leaf) => leaf.grad);
  };
`;

export interface LibraryReport {
  /** Below 1 where the result is as good as its dtype allows. */
  readonly worst: readonly [name: string, error: number][];
  readonly libraries: readonly { readonly name: string; readonly version: string; readonly reason: string }[];
}

/** What `program` noted; the variable names the library, undefined the one that belongs to the device. */
export function runWithLibrary(
  variable: string,
  library: string | undefined,
  program: string,
): LibraryReport {
  const env = { ...process.env };
  const path = library ?? (isSoftware ? process.env.RINGWISE_LIBCUDA : undefined);
  if (path !== undefined) env[variable] = path;
  const report = 'process.stdout.write(JSON.stringify({ worst, libraries: rw.cudaInfo().libraries }));';
  const args = ['--import', 'tsx', '--input-type=module', '-e', prelude + program + report];
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  return JSON.parse(execFileSync(process.execPath, args, { env, cwd, encoding: 'utf8', timeout: 120_000 }));
}
