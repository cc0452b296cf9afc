// A vitest reporter that prints, after a run, the command that repeats each failed test. The command has the
// seed that the test's error names (RINGWISE_SEED=…), or else the seed that this run was given, and
// RINGWISE_SOFTWARE_GPU if it is set. It has no other variables, also not RINGWISE_TEST_GPU.
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule, TestSuite } from 'vitest/node';
import { root } from './vitest.base.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const asPattern = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** Returns the name that vitest compares with -t: the names of the suites and of the test, joined by spaces. */
function nameOf(test: TestCase): string {
  const names = [test.name];
  for (let at: TestSuite | TestModule = test.parent; at.type === 'suite'; at = at.parent)
    names.unshift(at.name);
  return names.join(' ');
}

/** Returns the messages of the errors of a test that failed. */
const messagesOf = (test: TestCase): string[] => (test.result().errors ?? []).map(({ message }) => message);

/** Returns the seed that one of these messages names, or else the one that this run was given. */
function seedOf(messages: readonly string[]): string | undefined {
  const named = messages.map((message) => /RINGWISE_SEED=(\w+)/.exec(message)?.[1]).find(Boolean);
  return named ?? process.env.RINGWISE_SEED;
}

/** Returns the seed that an error in a test file names, or else the one that this run was given. */
export const seedOfFile = (module: TestModule): string | undefined =>
  seedOf([...module.children.allTests('failed')].flatMap(messagesOf));

/** Returns the command that runs a file again, or one test of it. */
export function commandFor(
  project: string,
  file: string,
  test?: string,
  messages: readonly string[] = [],
): string {
  const mode = process.env.RINGWISE_SOFTWARE_GPU;
  const seed = seedOf(messages);
  const words = [
    mode && `RINGWISE_SOFTWARE_GPU=${mode}`,
    seed && `RINGWISE_SEED=${seed}`,
    'npx vitest run --project',
    project,
    file,
  ];
  if (test !== undefined) words.push('-t', quoted(`^${asPattern(test)}$`));
  return words.filter(Boolean).join(' ');
}

export default class RepeatReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const commands: string[] = [];
    for (const module of modules) {
      const file = relative(root, module.moduleId);
      const { name } = module.project;
      if (module.errors().length > 0) commands.push(commandFor(name, file));
      for (const test of module.children.allTests('failed'))
        commands.push(commandFor(name, file, nameOf(test), messagesOf(test)));
    }
    for (const command of commands) console.error(`To repeat: ${command}`);
  }
}
