// Installs ringwise with each package manager that keeps packages apart in its own way, and runs programs there.
import { describe, expect, it } from 'vitest';
import {
  everyEntry,
  hello,
  helloAnswer,
  sortedLines,
  starters,
  training,
  twoRanks,
} from '../../support/programs.ts';
import { published } from '../../support/published.ts';

const given = published();
const files = { 'hello.mjs': hello, 'entries.mjs': everyEntry, 'train.mjs': training, ...starters };

interface Manager {
  readonly command: string;
  readonly add: readonly string[];
  /** Comes before the command of a package, and before a program for Node. */
  readonly exec: readonly string[];
  readonly node: readonly string[];
}

const managers: Readonly<Record<string, Manager>> = {
  'pnpm (strict)': {
    command: 'pnpm',
    add: ['add', 'ringwise'],
    exec: ['exec', 'ringwise'],
    node: ['exec', 'node'],
  },
  'Yarn 1': {
    command: 'yarn',
    add: ['add', 'ringwise', '--non-interactive'],
    exec: ['--silent', 'run', 'ringwise'],
    node: ['--silent', 'node'],
  },
  "Yarn 4, Plug'n'Play": {
    command: 'yarn-berry',
    add: ['add', 'ringwise'],
    exec: ['run', 'ringwise'],
    node: ['node'],
  },
};

describe.each(Object.entries(managers))('%s', (name, { command, add, exec, node }) => {
  it('installs ringwise; doctor, two ranks, spawn, worker threads and every entry work', async () => {
    const { room } = given;
    if (command === 'yarn-berry') room.addYarnBerry();
    const project = room.project(command, files);
    const succeed = async (...args: readonly string[]) => {
      const ended = await room.run(project, command, ...args);
      expect(ended, `${name}: ${args.join(' ')}`).toMatchObject({ code: 0 });
      return ended.stdout;
    };
    await succeed(...add);
    expect(await succeed(...exec, 'doctor')).toContain('Nothing is wrong.');
    expect(sortedLines(await succeed(...exec, ...twoRanks, 'hello.mjs'))).toEqual(helloAnswer);
    expect(await succeed(...exec, ...twoRanks, 'train.mjs')).toMatch(/epoch 3: loss \d/);
    expect(await succeed(...node, 'starters.mjs')).toBe('30,30 0,1,2,3\n');
    expect(await succeed(...node, 'entries.mjs')).toBe('1x3\n');
  });
});
