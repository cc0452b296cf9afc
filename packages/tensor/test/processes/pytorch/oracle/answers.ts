// Asks oracle.py for PyTorch's answers (RINGWISE_PYTHON, default python3), and decodes answers. stored.ts has the
// answers for machines without PyTorch.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Case, Result } from '../case.ts';

type Packed = readonly [dtype: string, shape: number[], elements: string] | string;

/** An answer in the form that oracle.py writes. */
export interface PackedAnswer {
  readonly raises?: string;
  readonly gradRaises?: string;
  readonly outs?: readonly Packed[];
  readonly grads?: readonly (Packed | null)[];
  /** Second gradients, null for zero; absent if they are not compared. */
  readonly seconds?: readonly (Packed | null)[];
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

export const unpackedAnswer = ({
  outs = [],
  grads = [],
  seconds,
  error = 0,
  ...rest
}: PackedAnswer): Answer => ({
  ...rest,
  outs: outs.map(unpacked),
  grads: grads.map((grad) => grad && unpacked(grad)) as Answer['grads'],
  ...(seconds && { seconds: seconds.map((second) => second && unpacked(second)) as Answer['grads'] }),
  error,
});

/** Longest time in ms that oracle.py may take, on a machine that is busy with other work. */
const limitMs = 900_000;

/** Runs oracle.py. Resolves with null if Python or its PyTorch is missing; rejects after other failures. */
export function askOracle(cases: readonly Case[]): Promise<OracleOutput | null> {
  const python = process.env.RINGWISE_PYTHON || 'python3';
  const program = fileURLToPath(new URL('./oracle.py', import.meta.url));
  // -B writes no bytecode beside the sources.
  const child = spawn(python, ['-B', program], { stdio: 'pipe', timeout: limitMs });
  let [output, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  // A Python that cannot start, or ends early, does not read its input.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(cases));
  return new Promise((resolve, reject) => {
    child.on('error', () => resolve(null));
    child.on('close', (status, signal) => {
      if (status === 0) resolve(JSON.parse(output) as OracleOutput);
      // A program that fails without an error text is not Python.
      else if (/No module named '?torch/.test(errors) || (status === 1 && errors === '')) resolve(null);
      else
        reject(
          new Error(
            `oracle.py ended with ${status ?? `${signal}, after at most ${limitMs / 1000} s`}: ${errors}`,
          ),
        );
    });
  });
}
