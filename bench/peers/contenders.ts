// Lists the contenders that are measured on one host, with their commands. Each runs as a user would start it, with
// default settings.
import { build, buildNative, findTorch, launcher, type Program, source } from './build.ts';
import { together } from './together.ts';

/** What one command has to measure. */
export interface Case {
  /** The verb's name in `ringwise bench`. */
  readonly verb: string;
  readonly ranks: number;
  /** Smallest and largest size in bytes; every size is 4 times the one before. */
  readonly min: number;
  readonly max: number;
  readonly seconds: number;
}

export interface Contender {
  readonly name: string;
  readonly kind: 'ours' | 'peer' | 'limit';
  /**
   * Returns the command, which prints a line of JSON for each size; null if this contender cannot run the
   * case. `folder` is an empty folder for the command, removed after it has ended.
   */
  readonly argv: (test: Case, folder: string) => readonly string[] | null;
}

export interface Found {
  readonly contenders: readonly Contender[];
  /** One sentence for each contender that is not installed, with what to install: "gloo: apt-get install …". */
  readonly missing: readonly string[];
}

type Argv = (path: string, test: Case, folder: string) => readonly string[] | null;

/** A program and the commands that measure it, by the contender's name. */
export interface Entry {
  /** Finds the program, or compiles it. */
  readonly program: () => Program | Promise<Program>;
  readonly kind: Contender['kind'];
  readonly commands: Readonly<Record<string, Argv>>;
}

/** Tells whether a contender of this name is to be measured. */
export type IsChosen = (name: string) => boolean;

/** Divides the chosen contenders into those that can be measured and the reasons why others cannot. */
export async function foundAmong(entries: readonly Entry[], isChosen: IsChosen): Promise<Found> {
  const contenders: Contender[] = [];
  const missing: string[] = [];
  for (const { program: find, kind, commands } of entries) {
    const chosen = Object.entries(commands).filter(([name]) => isChosen(name));
    if (chosen.length === 0) continue;
    const program = await find();
    for (const [name, argv] of chosen) {
      if ('missing' in program) missing.push(`${name}: ${program.missing}`);
      else contenders.push({ name, kind, argv: (test, folder) => argv(program.path, test, folder) });
    }
  }
  return { contenders, missing };
}

/**
 * Returns the command of collectives_bench; null for send-recv, which it does not measure. It would measure a
 * barrier once for each size, so for a barrier there is one size.
 */
export const native = (path: string, test: Case, ...more: string[]): string[] | null =>
  test.verb === 'send-recv'
    ? null
    : [
        ...[path, '--ranks', `${test.ranks}`, ...more],
        ...flags({
          ...test,
          verb: test.verb.replaceAll('-', '_'),
          max: hasSizes(test) ? test.max : test.min,
        }),
      ];

/** Finds the chosen contenders that can be measured on this host; compiles those that are not yet compiled. */
export async function findContenders(nativeFolder: string, isChosen: IsChosen): Promise<Found> {
  const bench = (path: string, { verb, ranks, min, max, seconds }: Case) => [
    ...[process.execPath, path, 'bench', verb, '--nproc-per-node', `${ranks}`, '--json'],
    ...['--min', `${min}`, '--max', `${max}`, '--seconds', `${seconds}`],
  ];
  const limit = (what: string) => (path: string, test: Case) =>
    test.verb === 'all-reduce' && test.ranks === 2 ? [path, what, ...flags(test)] : null;
  return foundAmong(
    [
      {
        program: () => buildNative(nativeFolder),
        kind: 'ours',
        commands: {
          c: (path, test) => native(path, test),
          'c-alloc': (path, test) => (hasSizes(test) ? native(path, test, '--alloc') : null),
        },
      },
      {
        program: () => ({ path: launcher }),
        kind: 'ours',
        commands: {
          js: (path, test) => [...bench(path, test), '--sync'],
          'js-async': (path, test) => [...bench(path, test), '--async'],
          'js-tcp': (path, test) => [...bench(path, test), '--async', '--backend', 'tcp'],
        },
      },
      {
        program: () => build('openmpi'),
        kind: 'peer',
        commands: {
          openmpi: (path, test) => [
            ...['mpirun.openmpi', '--oversubscribe', '-np', `${test.ranks}`, path, ...flags(test)],
          ],
        },
      },
      {
        program: () => build('mpich'),
        kind: 'peer',
        commands: {
          mpich: (path, test) => ['mpiexec.mpich', '-np', `${test.ranks}`, path, ...flags(test)],
        },
      },
      {
        program: () => build('gloo'),
        kind: 'peer',
        commands: {
          gloo: (path, test, folder) => [
            ...[path, '--ranks', `${test.ranks}`, '--store', folder, ...flags(test)],
          ],
        },
      },
      {
        program: () => findTorch(),
        kind: 'peer',
        commands: {
          torch: (path, test, folder) =>
            hasTorch(test)
              ? together(each(test.ranks, (rank) => torch(path, test, rank, folder, 'lo')))
              : null,
        },
      },
      {
        program: () => build('limits'),
        kind: 'limit',
        commands: { 'limit-staged': limit('staged'), 'limit-shared': limit('shared') },
      },
    ],
    isChosen,
  );
}

const hasSizes = ({ verb }: Case) => verb !== 'barrier';

/** Tells whether torch can run the case: its Gloo backend has no reduce-scatter, and torch_gloo.py has no send-recv. */
export const hasTorch = ({ verb }: Case) => !['reduce-scatter', 'send-recv'].includes(verb);

export function torch(path: string, test: Case, rank: number, folder: string, device: string): string[] {
  const place = ['--ranks', `${test.ranks}`, '--rank', `${rank}`, '--store', folder, '--iface', device];
  return [path, source('torch_gloo.py'), ...place, ...flags(test)];
}

const each = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));

/** Returns the flags that all programs of this folder understand. */
export function flags({ verb, min, max, seconds }: Case): string[] {
  return ['--verb', verb, '--min', `${min}`, '--max', `${max}`, '--factor', '4', '--seconds', `${seconds}`];
}
