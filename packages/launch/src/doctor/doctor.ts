// `ringwise doctor`: runs the launcher's own checks, then those of installed packages. None is required: a
// package that is missing is a line of the report.

import { loadPackageModule } from '../cli/package-command.ts';
import { unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type SpawnOptions, spawn } from '../spawn/spawn.ts';
import { type Finding, note, wrong } from './finding.ts';
import { examineHost } from './host-checks.ts';

/** Functions that a package's checks may call. */
export interface Tools {
  /** spawn() of this package. */
  readonly spawn: (module: URL | string, options: SpawnOptions) => Promise<unknown[]>;
}

/** Exports of a package's `doctor` module. */
interface Examiner {
  readonly examine: (tools: Tools) => AsyncIterable<Finding>;
}

const packages = {
  '@ringwise/collectives': 'collectives between ranks',
  '@ringwise/tensor': 'tensors and CUDA',
};

const help = `ringwise doctor [--json]

Looks at what ranks on this host need, and says how to mend what is wrong: Node, the native addons and where they were
found, CUDA, limits, loopback and ports, the launcher that init() would see here, and a short exchange of two ranks.

  --json        one object { ok, findings: [{ name, state, text, fix }] }; state is ok, note or wrong
  -h, --help

Exit code: 0; 1 if something is wrong; 2 for a wrong argument.
`;

/**
 * Runs the command and resolves with its exit code. Rejects with ERR_LAUNCH_ARGUMENT for a wrong argument.
 */
export async function doctor(argv: readonly string[]): Promise<number> {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(help);
    return 0;
  }
  for (const word of argv) {
    if (word === '--json') continue;
    throw unknownWord('ringwise doctor', 'argument', word, nearest(word, ['--json', '--help']));
  }
  const isJson = argv.includes('--json');
  const findings: Finding[] = [];
  for await (const finding of examineAll()) {
    findings.push(finding);
    if (!isJson) process.stdout.write(lineOf(finding));
  }
  const wrongs = findings.filter(({ state }) => state === 'wrong');
  const isFine = wrongs.length === 0;
  if (isJson) process.stdout.write(`${JSON.stringify({ ok: isFine, findings })}\n`);
  else process.stdout.write(isFine ? 'Nothing is wrong.\n' : `Wrong: ${namesOf(wrongs)}.\n`);
  return isFine ? 0 : 1;
}

async function* examineAll(): AsyncGenerator<Finding> {
  yield* examineHost(process.env);
  for (const [name, brings] of Object.entries(packages)) {
    try {
      const part = await loadPackageModule<Examiner>('doctor', name);
      if (part) yield* part.examine({ spawn });
      else yield note(name, `not installed here, or too old; it brings ${brings}: npm install ${name}`);
    } catch (error) {
      yield wrong(
        name,
        `its checks failed: ${(error as Error).message}`,
        `Install it again: npm install ${name}`,
      );
    }
  }
}

/** Widths of the first two columns in characters. */
const [stateWidth, nameWidth] = [7, 24];

function lineOf({ name, state, text, fix }: Finding): string {
  const lines = text.split('\n');
  if (fix !== undefined) lines.push(`To do: ${fix}`);
  const indent = ' '.repeat(stateWidth + nameWidth);
  return `${state.padEnd(stateWidth)}${name.padEnd(nameWidth)}${lines.join(`\n${indent}`)}\n`;
}

const namesOf = (findings: readonly Finding[]) => findings.map(({ name }) => name).join(', ');
