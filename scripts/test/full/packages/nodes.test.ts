// Runs programs of an installed ringwise on several versions of Node.js: that of this process, and those whose
// executables RINGWISE_TEST_NODES names, separated by ":".
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type CleanRoom, cleanRoom } from '../../support/clean-room.ts';
import {
  commonJs,
  hello,
  helloAnswer,
  sortedLines,
  training,
  twoRanks,
  typescript,
} from '../../support/programs.ts';
import { published } from '../../support/published.ts';

const given = published();
const others = (process.env.RINGWISE_TEST_NODES ?? '').split(':').filter(Boolean);
const nodes = [process.execPath, ...others].map((path): [version: string, path: string] => [
  execFileSync(path, ['--version'], { encoding: 'utf8' }).trim(),
  path,
]);

describe.each([...new Map(nodes)])('Node %s', (version, path) => {
  let room: CleanRoom;
  let project = '';
  const run = (file: string) => room.run(project, 'npx', 'ringwise', ...twoRanks, file);
  const [major, minor] = version.slice(1).split('.').map(Number) as [number, number];
  const stripsTypes = major > 22 || (major === 22 && minor >= 18);

  beforeAll(async () => {
    mkdirSync(join(given.work, 'rooms'), { recursive: true });
    room = cleanRoom(join(given.work, 'rooms', version), given.registry.url, path);
    project = room.project('npm', {
      'hello.mjs': hello,
      'hello.cjs': commonJs,
      'hello.mts': typescript,
      'train.mjs': training,
      'train.mts': training,
    });
    expect(await room.run(project, 'npm', 'install', 'ringwise')).toMatchObject({ code: 0 });
  });

  it.each(['hello.mjs', 'hello.cjs'])('%s runs on two ranks', async (file) => {
    const ended = await run(file);
    expect(ended).toMatchObject({ code: 0 });
    expect(sortedLines(ended.stdout)).toEqual(helloAnswer);
  });

  it('the program of the root README trains, and doctor finds no fault', async () => {
    const trained = await run('train.mjs');
    expect(trained).toMatchObject({ code: 0 });
    expect(trained.stdout).toMatch(/epoch 3: loss \d/);
    expect(await room.run(project, 'npx', 'ringwise', 'doctor')).toMatchObject({ code: 0 });
  });

  const title = stripsTypes ? 'runs as it is' : 'needs tsx, and a sentence says how to install it';
  it(`TypeScript ${title}`, async () => {
    const ended = await run('hello.mts');
    if (stripsTypes) {
      expect(ended).toMatchObject({ code: 0 });
      expect(sortedLines(ended.stdout)).toEqual(helloAnswer);
      expect(await run('train.mts')).toMatchObject({ code: 0 });
    } else {
      expect(ended.code).not.toBe(0);
      expect(ended.stderr).toContain('Run: npm install --save-dev tsx');
    }
  });
});
