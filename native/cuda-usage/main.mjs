// Prints what each CUDA kernel needs of a multiprocessor and what it keeps in flight, as a table in Markdown.
// Registers, spills and shared memory are those of the assembler (ptxas -v); no device is needed, but the headers that
// the build generates. With names of files, the table has their kernels only.
//   node native/cuda-usage/main.mjs [norm.cu …]
// Environment: CUDACXX names another nvcc.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { designOf } from './designs.mjs';
import { blocksPerMultiprocessor, threadsOf, usageOf } from './text.mjs';

const architectures = [80, 90, 120];
const native = fileURLToPath(new URL('..', import.meta.url));
const kernels = join(native, 'tensor/cuda/kernels');
const generated = join(native, 'build/generated');
const nvcc = process.env.CUDACXX ?? 'nvcc';
const named = process.argv.slice(2);
const files = readdirSync(kernels, { recursive: true })
  .filter((path) => path.endsWith('.cu') && (named.length === 0 || named.includes(basename(path))))
  .sort();
if (files.length === 0)
  throw new Error(`cuda-usage: no file in ${kernels} has one of the names ${named.join(', ')}.`);
if (!existsSync(generated)) throw new Error(`cuda-usage: ${generated} is missing. Run npm run build first.`);

/** Compiles a file for one architecture. Returns the usage of each kernel, and its threads per block. */
async function compiled(file, architecture) {
  const folder = mkdtempSync(join(tmpdir(), 'cuda-usage-'));
  try {
    const { stderr, stdout } = await promisify(execFile)(
      nvcc,
      [
        ...['-std=c++20', '-O3', '--expt-relaxed-constexpr', `-arch=sm_${architecture}`],
        ...[`-I${native}`, `-I${generated}`, '-Xptxas', '-v', '-cubin', '--keep', '--keep-dir', folder],
        ...[join(kernels, file), '-o', join(folder, 'image.cubin')],
      ],
      { maxBuffer: 1 << 26 },
    );
    const ptx = readFileSync(join(folder, `${basename(file, '.cu')}.ptx`), 'utf8');
    return { usage: usageOf(stdout + stderr), threads: threadsOf(ptx) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const kib = (bytes) => (bytes === 0 ? '–' : `${Math.round(bytes / 1024)} KiB`);

process.stdout.write(
  `| kernel | registers sm_${architectures.join(', ')} | bytes spilled | blocks per SM | in flight per SM | expected |\n` +
    '| --- | --- | --- | --- | --- | --- |\n',
);
for (const file of files) {
  const all = [];
  for (const architecture of architectures) all.push(await compiled(file, architecture));
  for (const [name, threads] of [...all[1].threads].sort()) {
    const of = all.map(({ usage }) => usage.get(name));
    const list = (values) => (new Set(values).size === 1 ? String(values[0]) : values.join(', '));
    const blocks = blocksPerMultiprocessor({ threads, ...of[1] });
    const { threadBytes, expected } = designOf(name);
    process.stdout.write(
      `| \`${name}\` | ${of.map((each) => each.registers).join(', ')} | ${list(of.map((each) => each.spilled))} | ` +
        `${blocks} | ${kib(blocks * threads * threadBytes)} | ${expected} |\n`,
    );
  }
}
