// PyTorch's answers: of oracle.py where a Python has it (RINGWISE_PYTHON, else python3), else those that are stored.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Case, Result } from './case.ts';

type Packed = readonly [dtype: string, shape: number[], elements: string] | string;

/** As oracle.py writes it. */
export interface PackedAnswer {
  readonly raises?: string;
  readonly gradRaises?: string;
  readonly outs?: readonly Packed[];
  readonly grads?: readonly (Packed | null)[];
  readonly error?: number;
}

export interface OracleOutput {
  readonly torch: string;
  readonly answers: readonly PackedAnswer[];
}

function unpacked(packed: Packed): Result {
  if (typeof packed === 'string') return packed;
  const [dtype, shape, text] = packed;
  const bytes = Uint8Array.from(Buffer.from(text, 'base64')).buffer;
  if (dtype === 'float64') return { dtype, shape, elements: new Float64Array(bytes) };
  if (dtype === 'int64') return { dtype, shape, elements: new BigInt64Array(bytes) };
  if (dtype === 'int32') return { dtype, shape, elements: new Int32Array(bytes) };
  if (dtype === 'uint8' || dtype === 'bool') return { dtype, shape, elements: new Uint8Array(bytes) };
  return { dtype, shape, elements: new Float32Array(bytes) };
}

export const unpackedAnswer = ({ outs = [], grads = [], error = 0, ...rest }: PackedAnswer): Answer => ({
  ...rest,
  outs: outs.map(unpacked),
  grads: grads.map((grad) => grad && unpacked(grad)) as Answer['grads'],
  error,
});

/** Starts oracle.py. Null where the Python is missing or has no PyTorch; other failures throw. */
export function askOracle(cases: readonly Case[]): Promise<OracleOutput | null> {
  const python = process.env.RINGWISE_PYTHON || 'python3';
  const program = fileURLToPath(new URL('./oracle.py', import.meta.url));
  // -B: no bytecode beside the sources.
  const child = spawn(python, ['-B', program], { stdio: 'pipe', timeout: 240_000 });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  // A Python that cannot be started, or ends early, does not read.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(cases));
  return new Promise((resolve, reject) => {
    child.on('error', () => resolve(null));
    child.on('close', (status) => {
      if (status === 0) resolve(JSON.parse(output) as OracleOutput);
      // What ends without a word is no Python.
      else if (/No module named '?torch/.test(errors) || (status === 1 && errors === '')) resolve(null);
      else reject(new Error(`oracle.py ended with ${status}: ${errors}`));
    });
  });
}
