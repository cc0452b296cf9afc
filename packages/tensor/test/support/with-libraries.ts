// Runs programs in processes of their own, because a process opens a library once. On the software device, functions
// of ours stand for the vendor's libraries. They show that our calls are right, not how the vendor's code computes.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const isSoftware = process.env.RINGWISE_LIBCUDA?.endsWith('libsoftware_cuda.so') === true;

/**
 * Defines check(name, inputs, run), which records the largest difference between the results of CPU and CUDA, as a
 * fraction of the tolerance of the dtype.
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
  /** Returns the gradients of leaves, summed over two passes through the mean of squares. */
  const gradients = (leaves, run) => {
    for (const leaf of leaves) leaf.requiresGrad = true;
    for (let i = 0; i < 2; i++) run(...leaves).to('float32').square().mean().backward();
    return leaves.map((leaf) => leaf.grad);
  };
`;

export interface LibraryReport {
  /** Largest error of each check, as a fraction of the tolerance of its dtype; below 1 if the check passed. */
  readonly worst: readonly [name: string, error: number][];
  readonly libraries: readonly { readonly name: string; readonly version: string; readonly reason: string }[];
}

/**
 * Runs `program` in a process and returns its report. The environment variable `variable` gets `library`; if that is
 * undefined, the program uses the vendor's library, or ours on the software device.
 */
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
  return JSON.parse(execFileSync(process.execPath, args, { env, cwd, encoding: 'utf8', timeout: 240_000 }));
}
