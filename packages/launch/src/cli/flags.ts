// The flags of `ringwise run`: those of torchrun, and --elastic, --grace, --dry-run and the last group. docs/launch.md
// lists the differences from torchrun. Each flag can also be set as the variable PET_<NAME>.

import { bindingKinds } from '../agent/binding.ts';

export interface Flag {
  readonly name: string;
  readonly short?: string;
  /** Name of the value in the help text; absent for a switch. */
  readonly value?: string;
  /** The value is optional and must be given as --name=value. */
  readonly isValueOptional?: true;
  /** Possible values, for shell completion; other values may be valid, too. */
  readonly choices?: readonly string[];
  /** Names under which users look for this flag, without dashes, for the error about an unknown flag. */
  readonly soughtAs?: readonly string[];
  /** Scripts often have a flag of this name themselves, so no hint is printed if it comes after the script. */
  readonly isCommon?: true;
  readonly help: string;
}

export interface FlagGroup {
  readonly title: string;
  readonly flags: readonly Flag[];
}

export const flagGroups: readonly FlagGroup[] = [
  {
    title: 'What to start on this host',
    flags: [
      {
        name: 'nproc-per-node',
        short: 'n',
        value: 'N',
        choices: ['auto', 'cpu', 'gpu'],
        soughtAs: ['np', 'nprocs', 'num-processes', 'procs', 'ranks', 'world-size', 'gpus', 'workers'],
        help: 'ranks to start: a number, auto (GPUs, else cores), cpu, gpu [1]',
      },
      {
        name: 'no-python',
        help: 'the script is any program; it is looked for in PATH and run without node',
      },
      {
        name: 'numa-binding',
        value: 'WHAT',
        choices: bindingKinds,
        help: "processors of a rank: node or socket of its GPU, exclusive (its share of the node's cores), core-complex",
      },
      {
        name: 'virtual-local-rank',
        help: 'each rank gets LOCAL_RANK 0 and, in CUDA_VISIBLE_DEVICES, only its own GPU; refused with fewer GPUs than ranks',
      },
      { name: 'role', value: 'NAME', isCommon: true, help: 'value of the variable ROLE_NAME [default]' },
      {
        name: 'dry-run',
        isCommon: true,
        help: 'start nothing; print the command and variables of each process',
      },
    ],
  },
  {
    title: 'Several hosts: run the same command on each',
    flags: [
      {
        name: 'nnodes',
        value: 'N|MIN:MAX',
        soughtAs: ['nodes', 'num-nodes', 'hosts', 'nhosts'],
        help: 'hosts of the job; a range may grow and shrink [1]',
      },
      {
        name: 'rdzv-backend',
        value: 'static|c10d',
        choices: ['static', 'c10d'],
        help: 'static: hosts are numbered, host 0 is the master; c10d: any order [static]',
      },
      {
        name: 'rdzv-endpoint',
        value: 'HOST[:PORT]',
        help: 'c10d: where hosts meet; the one with that address keeps the store [port 29400]',
      },
      {
        name: 'rdzv-id',
        value: 'ID',
        help: 'name of the run, the same on all hosts [one host: random; several: none]',
      },
      {
        name: 'rdzv-conf',
        value: 'K=V,…',
        help: 'join_timeout [600 s], last_call_timeout [30], keep_alive_interval [0.5], keep_alive_max_attempt [5], is_host',
      },
      {
        name: 'node-rank',
        value: 'R',
        soughtAs: ['machine-rank', 'host-rank', 'rank'],
        help: "static: index of this host [Slurm's or Kubernetes' index, else 0]",
      },
      { name: 'master-addr', value: 'HOST', help: 'static: address of host 0 [127.0.0.1, or ::1]' },
      { name: 'master-port', value: 'PORT', help: 'static: its port [one host: a free one; several: 29500]' },
      { name: 'local-addr', value: 'HOST', help: 'how this host is named in reports [its host name]' },
      { name: 'standalone', help: 'one host and a free port, whatever the other flags say' },
    ],
  },
  {
    title: 'When something fails',
    flags: [
      {
        name: 'max-restarts',
        value: 'N',
        soughtAs: ['retries', 'restarts', 'max-retries'],
        help: 'how often all ranks are started again after a failure or the loss of a host [0]; with --elastic, each rank [3]',
      },
      {
        name: 'elastic',
        value: 'MIN:MAX',
        isValueOptional: true,
        soughtAs: ['min-ranks', 'max-ranks', 'elasticity'],
        help: 'a lost rank stops no other and is started again; the job goes on with MIN ranks, and has at most MAX',
      },
      {
        name: 'grace',
        value: 'SECONDS',
        help: 'with --elastic: from a signal to SIGKILL, for ranks that finish a step and leave [30]',
      },
      {
        name: 'monitor-interval',
        value: 'SECONDS',
        help: 'accepted as in torchrun, without effect: the end of a rank is noticed at once',
      },
      {
        name: 'shutdown-timeout',
        value: 'SECONDS',
        help: 'from SIGTERM to SIGKILL when ranks are stopped [30]',
      },
      {
        name: 'signals-to-handle',
        value: 'S,…',
        help: 'passed on to the ranks, which then end [SIGTERM,SIGINT,SIGHUP,SIGQUIT; under nohup without SIGHUP]',
      },
    ],
  },
  {
    title: 'Output',
    flags: [
      { name: 'log-dir', value: 'DIR', isCommon: true, help: 'where log and error files go' },
      {
        name: 'redirects',
        short: 'r',
        value: 'WHAT',
        choices: ['0', '1', '2', '3'],
        isCommon: true,
        help: 'into files only: 0 nothing, 1 stdout, 2 stderr, 3 both; per local rank as 0:3,1:1 [0]',
      },
      {
        name: 'tee',
        short: 't',
        value: 'WHAT',
        choices: ['0', '1', '2', '3'],
        isCommon: true,
        help: 'into files and to the terminal; written as above [0]',
      },
      {
        name: 'local-ranks-filter',
        value: 'R,…',
        help: 'local ranks whose lines reach the terminal [all]',
      },
    ],
  },
  {
    title: 'What ranks report with reportMetrics(); on the host that keeps the store, for all hosts',
    flags: [
      {
        name: 'ui',
        value: 'HOST:PORT',
        isValueOptional: true,
        soughtAs: ['dashboard', 'web', 'live'],
        help: 'serve a live page while the job runs, also --ui=PORT; its address is printed [loopback, a free port]',
      },
      {
        name: 'ui-keep',
        help: 'the live page stays after the job, until Ctrl-C; without --ui it has a free port',
      },
      {
        name: 'report',
        value: 'FILE',
        isCommon: true,
        help: 'write the page with all that it shows into one HTML file',
      },
      {
        name: 'metrics',
        value: 'FILE',
        isCommon: true,
        help: 'add every report to this file, a line of JSON each',
      },
      {
        name: 'tensorboard',
        value: 'DIR',
        isCommon: true,
        help: "write TensorBoard's event files there, one folder per rank",
      },
    ],
  },
];

export const flags: readonly Flag[] = flagGroups.flatMap((group) => group.flags);

/** Flags of torchrun that this version lacks. Listed so that the error does not suggest a misspelling. */
export const unsupportedFlags: readonly string[] = [
  'start-method',
  'module',
  'run-path',
  'duplicate-stdout-filters',
  'duplicate-stderr-filters',
  'event-log-handler',
  'logs-specs',
];

/** Returns the variable of a flag: PET_NPROC_PER_NODE for nproc-per-node. */
export const variableOf = (flag: string) => `PET_${flag.toUpperCase().replaceAll('-', '_')}`;
