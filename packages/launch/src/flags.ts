// The flags of `ringwise run`: torchrun's names, meanings and defaults, each also read from PET_<NAME>.

export interface Flag {
  readonly name: string;
  /** How help names the value; absent for a switch. */
  readonly value?: string;
  readonly help: string;
}

export const flags: readonly Flag[] = [
  {
    name: 'nproc-per-node',
    value: 'N',
    help: 'ranks to start: a number, auto (GPUs, else cores), cpu, gpu [1]',
  },
  { name: 'standalone', help: 'one host and a free port, whatever the other flags say' },
  { name: 'nnodes', value: 'N', help: 'hosts of the job; only 1 in this version [1]' },
  { name: 'node-rank', value: 'R', help: 'index of this host [0]' },
  { name: 'master-addr', value: 'HOST', help: 'address on which to host the store [127.0.0.1]' },
  { name: 'master-port', value: 'PORT', help: 'its port [a free one]' },
  { name: 'rdzv-id', value: 'ID', help: 'name of the run [random]' },
  { name: 'shutdown-timeout', value: 'SECONDS', help: 'from SIGTERM to SIGKILL when ranks are stopped [30]' },
];

/** What torchrun has and this version has not: named, so that nobody hunts for a typing error. */
export const flagsToCome: readonly string[] = [
  'rdzv-backend',
  'rdzv-endpoint',
  'rdzv-conf',
  'max-restarts',
  'monitor-interval',
  'start-method',
  'role',
  'module',
  'no-python',
  'run-path',
  'log-dir',
  'redirects',
  'tee',
  'local-ranks-filter',
  'duplicate-stdout-filters',
  'duplicate-stderr-filters',
  'local-addr',
  'event-log-handler',
  'logs-specs',
  'numa-binding',
  'signals-to-handle',
  'virtual-local-rank',
];

/** PET_NPROC_PER_NODE for nproc-per-node. */
export const variableOf = (flag: string) => `PET_${flag.toUpperCase().replaceAll('-', '_')}`;

export const mainHelp = `ringwise: distributed training for Node.js

  ringwise run [flags] script [arguments]   start the ranks of a script and watch them
  ringwise run --help                       its flags
  ringwise bench verb [flags]               measure a collective, such as all-reduce
  ringwise flight path... > trace.json      what ranks did last, as a Chrome trace
  ringwise bench --help                     verbs, flags, and what the columns mean
  ringwise --version
`;

export const runHelp = `ringwise run [flags] script [arguments]

Starts N processes of a .js or .ts script, with torchrun's variables (RANK, WORLD_SIZE, …). When one fails, the
others are stopped and the first cause is reported. What follows the script belongs to the script.

${flags.map(({ name, value, help }) => `  ${`--${name}${value ? ` ${value}` : ''}`.padEnd(28)}${help}`).join('\n')}
  -h, --help

Dashes or underscores; each flag also as a variable: --nproc-per-node 2 is PET_NPROC_PER_NODE=2.
Flags for node itself: NODE_OPTIONS. Exit code: 0, that of the rank that failed first (128 + number for a
signal), or 2 if nothing was started because of a wrong argument.
`;
