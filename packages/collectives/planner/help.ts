// The text of `ringwise plan --help`.
import { planDTypes, planWires } from './options.ts';

const rows = (lines: readonly (readonly [string, string])[]) =>
  lines.map(([name, text]) => `  ${name.padEnd(26)}${text}`.trimEnd()).join('\n');

/** Returns the text of `ringwise plan --help`. */
export const help = () => `ringwise plan --ranks N --link RATE --params COUNT --step-ms T [flags]

Estimates a training step of ddp() on hosts that you do not have: how long it takes, how much of it waits for
communication, and with which algorithm and bucket size it is shortest. Plans of the real library run on a simulated
network, so nothing is measured, and no ranks are started.

  ringwise plan --ranks 512 --link 100g --params 124M --step-ms 80
  ringwise plan --ranks 64 --per-host 8 --link 25g --params 1.5B --step-ms 900 --dtype bfloat16 --svg plan.svg

What is needed
${rows([
  ['--ranks N', 'ranks of the job, 2 to 16384'],
  ['--link RATE', "bits per second of a host's port, as 100g, 2.5g or 800m"],
  ['--params COUNT', 'parameters that train, as 124M, 1.5B or 7000000'],
  ['--step-ms T', 'milliseconds of a step of one rank that does not communicate'],
])}

Flags
${rows([
  [
    '--per-host P, --hosts H',
    'ranks of a host, which share its port, or how many hosts there are [1 per host]',
  ],
  ['--latency-us T', 'microseconds from host to host [20]'],
  ['--overhead-us T', 'microseconds that a message keeps a port busy besides its bytes [1]'],
  ['--inside-link RATE', 'from rank to rank of a host [80g]'],
  ['--inside-latency-us T', '[1]'],
  ['--inside-overhead-us T', '[0.2]'],
  ['--dtype TYPE', `type of the gradients: ${planDTypes.join(', ')} [float32]`],
  ['--wire WIRE', `what float32 travels as between hosts: ${planWires.join(', ')} [full]`],
  ['--backward-share S', 'share of --step-ms that backward takes, which can hide communication [0.67]'],
  ['--buckets SIZES', 'sizes of buckets to try, as 1M,25M [1M,5M,25M,50M,100M]'],
  ['--json', 'one line of JSON with all algorithms, and nothing else'],
  ['--svg FILE', 'draw the steps, and the best one over time'],
  ['-h, --help', ''],
])}

Columns
${rows([
  ['all-reduces', 'all operations of a step together, also while backward runs'],
  ['step', 'the expected time of a step; * marks the best'],
  ['exposed', 'the part of the step in which the ranks only wait for communication'],
])}

Times leave out what ranks take to add and copy. docs/simulation.md describes the model.
Exit code: 0; 2 for a wrong argument.
`;
