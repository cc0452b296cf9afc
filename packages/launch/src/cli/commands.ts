// The commands of `ringwise`, for help, suggestions and shell completion.

export interface Command {
  readonly name: string;
  readonly help: string;
  /** Words that may follow, for completion. */
  readonly words?: readonly string[];
  /** Whether files may follow. */
  readonly takesFiles?: true;
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

export const commands: readonly Command[] = [
  { name: 'run', help: 'start the ranks of a script and watch them', takesFiles: true },
  { name: 'bench', help: 'measure a collective, such as all-reduce', words: ['--help'] },
  {
    name: 'doctor',
    help: 'what this host has, what is wrong, and how to mend it',
    words: ['--json', '--help'],
  },
  {
    name: 'flight',
    help: 'what ranks did last, as a Chrome trace',
    words: ['--help'],
    takesFiles: true,
  },
  {
    name: 'plan',
    help: 'how long a training step would take on hosts that you do not have',
    words: [
      '--ranks',
      '--hosts',
      '--per-host',
      '--link',
      '--latency-us',
      '--overhead-us',
      '--inside-link',
      '--inside-latency-us',
      '--inside-overhead-us',
      '--params',
      '--dtype',
      '--wire',
      '--step-ms',
      '--backward-share',
      '--buckets',
      '--json',
      '--svg',
      '--help',
    ],
    takesFiles: true,
  },
  { name: 'completion', help: 'completion of commands and flags for a shell', words: shells },
  { name: 'help', help: 'this overview; help run lists the flags of run', words: ['run'] },
];
