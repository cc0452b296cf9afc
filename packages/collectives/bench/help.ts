// The text of `ringwise bench --help`.
import { dtypes } from '../src/dtype.ts';
import { reduceOps } from '../src/reduce-ops.ts';
import { benchVerbs } from './verbs.ts';

/** Returns the text of `ringwise bench --help`. */
export const help = () => `ringwise bench verb [flags]

Starts ranks on this host, times one collective operation at a range of sizes, and checks every answer.

  ringwise bench all-reduce --nproc-per-node 2
  ringwise bench all-gather --min 1K --max 1G --dtype bfloat16 --json

Verbs
${rows(benchVerbs.map(({ name, does }) => [name, does]))}

Flags
${rows([
  ['--nproc-per-node N', 'ranks to start, also -n N: a number, auto (GPUs, else cores), cpu, gpu [2]'],
  ['--min SIZE', 'first size in bytes, as 4, 64K, 16M or 1G [4]'],
  ['--max SIZE', 'last size [64M]'],
  ['--factor F', 'each size is F times the one before [4]'],
  ['--dtype TYPE', `one of ${wrapped(dtypes)} [float32]`],
  ['--op OP', `what reductions compute: ${wrapped(reduceOps)} [sum]`],
  ['--backend NAME', 'host, tcp, mpi, or one that NODE_OPTIONS=--import registers [that of init()]'],
  ['--sync, --async', 'call the Sync form, or await the plain one [sync where the backend can block]'],
  ['--alloc', 'buffers from group.alloc() instead of plain typed arrays'],
  ['--seconds S', 'time for the calls of one size [0.3]'],
  ['--json', 'one line of JSON for each size, and nothing else'],
  [
    '--tune',
    'every algorithm in turn, and rules for a file that RINGWISE_TUNING names; for several hosts, on',
  ],
  ['', 'which another launcher starts bench-rank.js: docs/performance.md#rules-of-your-own'],
  ['--save FILE', "write each size's time as a ratio to what the machine could do in the same run"],
  [
    '--compare FILE',
    'compare these ratios with a saved file; more than 10 % slower is an error. A size that',
  ],
  ['', 'seems slower is measured up to twice more, and the best ratio counts'],
  ['-h, --help', ''],
])}

Columns, as in nccl-tests
${rows([
  ['size', 'bytes of the whole vector: the buffer, or the larger of input and output. It is rounded down'],
  ['', 'to whole elements, in each part where there is a part for every rank'],
  ['time', 'median of the calls, back to back; a call takes as long as its slowest rank. Calls shorter'],
  ['', 'than 10 us are timed in groups'],
  ['algbw', 'size / time'],
  ['busbw', 'algbw × what must cross the link of a rank per byte of the vector, so that it compares'],
  ['', 'with the hardware at any number of ranks. For n ranks: all-reduce 2(n-1)/n; all-gather,'],
  ['', 'reduce-scatter, all-to-all, gather, scatter (n-1)/n; others 1'],
  ['wrong', 'elements of all ranks that are not exactly right, before and after the timed calls'],
  ['iters', 'number of timed calls; behind it the algorithm that ran, where the backend tells'],
])}

Exit code: 0; 1 if anything was wrong, or slower than --compare allows; 2 for a wrong argument. --json has the times as p50Us and the bandwidths as
algbwGBs and busbwGBs, in 10^9 bytes per second.
`;

function rows(lines: readonly (readonly [string, string])[]): string {
  return lines.map(([name, text]) => `  ${name.padEnd(20)}${text}`.trimEnd()).join('\n');
}

function wrapped(words: readonly string[]): string {
  const lines: string[] = [''];
  for (const [i, word] of words.entries()) {
    const piece = i < words.length - 1 ? `${word}, ` : word;
    if (lines.at(-1)!.length + piece.length > 70) lines.push('');
    lines[lines.length - 1] += piece;
  }
  return lines.map((line) => line.trimEnd()).join(`\n${' '.repeat(22)}`);
}
