// Installs ringwise as npm does on other platforms, and runs it there in processes that take themselves for that
// platform: types, one process, and two ranks over tcp. Native code of another platform cannot be loaded here.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { platform as here } from '../../support/clean-room.ts';
import { disguised } from '../../support/disguise.ts';
import { everyEntry, hello, helloAnswer, sortedLines, training, twoRanks } from '../../support/programs.ts';
import { published } from '../../support/published.ts';
import { typesOf } from '../../support/types-of.ts';

const given = published();

/** What npm is told, and what the packages of the platform end with. */
const platforms = [
  ['macOS arm64', 'darwin', 'arm64', null],
  ['macOS x64', 'darwin', 'x64', null],
  ['Windows x64', 'win32', 'x64', null],
  ['Alpine x64', 'linux', 'x64', 'musl'],
  ['Alpine arm64', 'linux', 'arm64', 'musl'],
  ['Linux x64', 'linux', 'x64', 'glibc'],
  ['Linux arm64', 'linux', 'arm64', 'glibc'],
] as const;

describe.each(platforms)('platform %s', (_, os, arch, libc) => {
  const ending = `${os}${libc === 'musl' ? 'musl' : ''}-${arch}`;

  it('npm installs its packages; types, one process and two ranks work', async () => {
    const { room, packed } = given;
    const files = { 'hello.mjs': hello, 'train.mjs': training, 'entries.mjs': everyEntry };
    const project = room.project(`on-${ending}`, files);
    const flags = [`--os=${os}`, `--cpu=${arch}`, ...(libc ? [`--libc=${libc}`] : [])];
    expect(await room.run(project, 'npm', 'install', 'ringwise', ...flags)).toMatchObject({ code: 0 });
    const expected = packed
      .map(({ manifest }) => manifest.name)
      .filter((name) => ['collectives', 'tensor'].some((family) => name === `@ringwise/${family}-${ending}`));
    const compiled = readdirSync(join(project, 'node_modules/@ringwise')).filter((name) =>
      name.includes('-'),
    );
    expect(compiled.map((name) => `@ringwise/${name}`).toSorted()).toEqual(expected.toSorted());

    // On Linux, other tests check the types.
    if (os !== 'linux') expect(typesOf(project)).toBe('');
    const env = disguised(project, { platform: os, arch, glibc: libc === 'glibc' ? '2.36' : null });
    const run = (...args: readonly string[]) => room.runWith(env, project, 'node', ...args);
    const launcher = ['node_modules/ringwise/bin/ringwise.js', ...twoRanks];
    expect(await run('entries.mjs')).toMatchObject({ code: 0, stdout: '1x3\n' });
    const ended = await run(...launcher, 'hello.mjs');
    expect(ended).toMatchObject({ code: 0 });
    expect(sortedLines(ended.stdout)).toEqual(helloAnswer);
    expect(ended.stderr.includes('RINGWISE_TCP_FALLBACK')).toBe(ending !== here);
    const trained = await run(...launcher, 'train.mjs');
    expect(trained).toMatchObject({ code: 0 });
    expect(trained.stdout).toMatch(/epoch 3: loss \d/);
  });
});
