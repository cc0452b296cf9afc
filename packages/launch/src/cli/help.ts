// The texts of --help.

import { type Flag, flagGroups } from './flags.ts';
import { styled } from './style.ts';

export const mainHelp = (
  stream: 'stdout' | 'stderr',
) => `${styled(stream, 'bold', 'ringwise')}: distributed training for Node.js

  ringwise run [flags] script [arguments]   start the ranks of a script and watch them
  ringwise run --help                       its flags; "run" may be left out before a script or a flag
  ringwise bench verb [flags]               measure a collective, such as all-reduce
  ringwise doctor [--json]                  what this host has, what is wrong, and how to mend it
  ringwise flight path... > trace.json      what ranks did last, as a Chrome trace
  ringwise plan [flags]                     how long a training step would take on hosts that you do not have
  ringwise bench --help                     verbs, flags, and what the columns mean
  ringwise completion bash|zsh|fish         a script that completes commands and flags
  ringwise --version
`;

const lineOf = ({ name, short, value, isValueOptional, help }: Flag) => {
  const shown = value && (isValueOptional ? `[=${value}]` : ` ${value}`);
  const flag = `${short ? `-${short}, ` : ''}--${name}${shown ?? ''}`;
  return `  ${flag.padEnd(28)}${flag.length > 27 ? `\n${' '.repeat(30)}` : ''}${help}`;
};

export const runHelp = () => `${styled('stdout', 'bold', 'ringwise run')} [flags] script [arguments]

Starts N processes ("ranks") of a .js, .ts or .py script. Each learns from variables such as RANK and WORLD_SIZE which
one it is. When one fails, the others are stopped and the root cause is reported. Words after the script are its
arguments.

  ringwise run --nproc-per-node 2 train.ts --lr 0.1                       two ranks on this host
  ringwise run --nnodes 2 --nproc-per-node 2 --node-rank R \\
               --master-addr gpu-a train.ts                               on each of two hosts, R = 0 and 1
  ringwise run --nnodes 1:4 --max-restarts 3 --rdzv-backend c10d \\
               --rdzv-endpoint gpu-a train.ts                             on up to four hosts that come and go
  ringwise run --elastic --nproc-per-node 4 train.ts                      a lost rank stops no other (@ringwise/elastic)

Several hosts need one secret: export RINGWISE_SECRET on each, or RINGWISE_SECRET_FILE with the name of a file. On one
host it is random. PyTorch cannot prove a secret: on one host a .py script is not asked for one.

${flagGroups.map(({ title, flags }) => `${styled('stdout', 'bold', title)}\n${flags.map(lineOf).join('\n')}`).join('\n\n')}

  -h, --help

Dashes or underscores; each flag also as a variable: --nproc-per-node 2 is PET_NPROC_PER_NODE=2.
Flags for node itself: NODE_OPTIONS. Exit code: 0, that of the rank with the root cause (128 + number for a
signal), 2 if nothing was started because of a wrong argument, or 1 for other errors of the launcher.
`;
