// Rehearses a release with npm: publishes all packages to a registry on the loopback interface, installs them from
// there into an empty project, without a compiler and without this repository, and runs the READMEs' programs.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { publishAll } from '../../../release/publish-all.mjs';
import { type Ended, platform } from '../../support/clean-room.ts';
import {
  commonJs,
  everyEntry,
  hello,
  helloAnswer,
  sortedLines,
  starters,
  training,
  twoRanks,
} from '../../support/programs.ts';
import { published } from '../../support/published.ts';
import { typesOf } from '../../support/types-of.ts';

const given = published({ isEmpty: true });

beforeAll(async () => {
  const env = { ...process.env, npm_config_userconfig: join(given.work, 'room/npmrc') };
  await publishAll(given.packed, { registry: given.registry.url, env });
});

it('npm publishes compiled packages first, and ringwise last', () => {
  const names = given.registry.published();
  const isCompiled = (name: string): boolean => /-(linux|linuxmusl|darwin|win32)-/.test(name);
  expect(names.filter(isCompiled)).toEqual(names.slice(0, names.filter(isCompiled).length));
  expect(names.at(-1)).toBe('ringwise');
});

describe('npm', () => {
  let project = '';
  let trained: Ended;
  const files = {
    'hello.mjs': hello,
    'hello.cjs': commonJs,
    'entries.mjs': everyEntry,
    'train.mjs': training,
  };
  beforeAll(async () => {
    project = given.room.project('npm', { ...files, ...starters });
    const begun = performance.now();
    expect(await given.room.run(project, 'npm', 'install', 'ringwise')).toMatchObject({ code: 0 });
    trained = await given.room.run(project, 'npx', 'ringwise', ...twoRanks, 'train.mjs');
    console.log(`npm install and two ranks: ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  });

  it('installs the compiled packages of this platform alone, and nothing of others', () => {
    const ours = readdirSync(join(project, 'node_modules/@ringwise')).toSorted();
    expect(ours.filter((name) => name.includes('-'))).toEqual([
      `collectives-${platform}`,
      `tensor-${platform}`,
    ]);
    expect(readdirSync(join(project, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
      '@ringwise',
      'ringwise',
    ]);
  });

  it('the program of the root README trains on two ranks', () => {
    expect(trained).toMatchObject({ code: 0 });
    const losses = [...trained.stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
    expect([losses.length, losses[0]! > 2 * losses[2]!]).toEqual([3, true]);
  });

  it.each(['hello.mjs', 'hello.cjs'])('%s runs on two ranks', async (file) => {
    const ended = await given.room.run(project, 'npx', 'ringwise', ...twoRanks, file);
    expect(ended).toMatchObject({ code: 0 });
    expect(sortedLines(ended.stdout)).toEqual(helloAnswer);
  });

  it.each([
    ['every entry can be imported', 'entries.mjs', '1x3\n'],
    ['spawn() and worker threads start', 'starters.mjs', '30,30 0,1,2,3\n'],
  ])('%s', async (_, file, stdout) => {
    expect(await given.room.run(project, 'node', file)).toMatchObject({ code: 0, stdout });
  });

  it('ringwise doctor finds no fault', async () => {
    expect(await given.room.run(project, 'npx', 'ringwise', 'doctor')).toMatchObject({ code: 0 });
  });

  it('the types of every entry are clean without skipLibCheck', () => {
    expect(typesOf(project)).toBe('');
  });

  it('no compiler can be found', async () => {
    const compilers = ['cc', 'gcc', 'g++', 'clang', 'make', 'cmake', 'python3', 'node-gyp'];
    const looks = compilers.map((name) => `command -v ${name}`).join('; ');
    expect((await given.room.run(project, 'sh', '-c', looks)).stdout).toBe('');
  });
});
