// Where no compiled package can be loaded, ranks work over tcp, and programs that ask for native code get a sentence
// with the reason and the next step. Each case is made as it happens to users, as far as one machine can.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { platform } from '../../support/clean-room.ts';
import { type Disguise, disguised } from '../../support/disguise.ts';
import { hello, helloAnswer, sortedLines, twoRanks } from '../../support/programs.ts';
import { type Packed, published } from '../../support/published.ts';

const given = published();

const files = {
  'hello.mjs': hello,
  'native.mjs': `import { init } from 'ringwise/collectives';
await init({ backend: 'host' }).catch((error) => console.log(error.code, error.message));
`,
  'kernels.mjs': `process.env.RINGWISE_KERNELS = 'native';
const { tensor } = await import('ringwise/tensor');
try { tensor([1]).add(1); } catch (error) { console.log(error.code, error.message); }
`,
};

/** Tells for both families whether a package is made for a platform. Windows has only that of tensors. */
const releasedFor = (packed: Packed, ending: string): Released => {
  const has = (family: string) =>
    packed.some(({ manifest }) => manifest.name === `@ringwise/${family}-${ending}`);
  return { collectives: has('collectives'), tensor: has('tensor') };
};

/** Makes the addons need a glibc that no system has: the dynamic loader refuses them, as it does on an old system. */
function needNewGlibc(project: string): void {
  for (const [family, file] of [
    ['collectives', 'coll.node'],
    ['tensor', 'tensor.node'],
  ]) {
    const path = join(project, `node_modules/@ringwise/${family}-${platform}/${file}`);
    const bytes = readFileSync(path);
    // Versions stand as text in the table of names: GLIBC_2.14 becomes GLIBC_9.14.
    for (let at = bytes.indexOf('GLIBC_2.'); at >= 0; at = bytes.indexOf('GLIBC_2.', at))
      bytes.write('9', at + 'GLIBC_'.length);
    writeFileSync(path, bytes);
  }
}

interface Released {
  readonly collectives: boolean;
  readonly tensor: boolean;
}

interface Case {
  readonly flags?: readonly string[];
  readonly disguise?: Disguise;
  readonly prepare?: (project: string) => void;
  /** What the two sentences must contain. */
  readonly says: (released: Released) => readonly [collectives: string | RegExp, tensor: string | RegExp];
  readonly ending?: string;
}

const notInstalled = (ending: string, reason: RegExp | string = '') =>
  ((released) => [
    released.collectives
      ? `@ringwise/collectives-${ending} is not installed; it is an optional dependency, which npm leaves out with --omit=optional`
      : reason || `no package is built for ${ending}`,
    released.tensor ? `Install @ringwise/tensor-${ending}` : 'No release has one for this platform; build it',
  ]) satisfies Case['says'];

const cases: Readonly<Record<string, Case>> = {
  'omitted by npm install --omit=optional': { flags: ['--omit=optional'], says: notInstalled(platform) },
  'lost in a failed download': { says: notInstalled(platform) },
  'an older glibc than the addons need': {
    prepare: needNewGlibc,
    says: () => [
      /collectives-\S+ needs GLIBC 9\.[\d.]+, and this system has 2\.\d+.*Use a newer system or the tcp backend/s,
      /version `GLIBC_9\.[\d.]+' not found.*The file is there and does not load/s,
    ],
  },
  'a folder node_modules of another processor': {
    disguise: { platform: 'linux', arch: platform.endsWith('x64') ? 'arm64' : 'x64', glibc: '2.36' },
    says: () => [
      /is not installed, but @ringwise\/collectives-\S+ is: the folder node_modules is from another platform/,
      /Install @ringwise\/tensor-linux-(arm64|x64)/,
    ],
  },
  'musl (Alpine)': {
    flags: ['--omit=optional'],
    disguise: { platform: 'linux', arch: process.arch, glibc: null },
    ending: `linuxmusl-${process.arch}`,
    says: notInstalled(
      `linuxmusl-${process.arch}`,
      'this Linux has musl instead of glibc, and no package is built',
    ),
  },
  macOS: {
    flags: ['--omit=optional'],
    disguise: { platform: 'darwin', arch: 'arm64', glibc: null },
    ending: 'darwin-arm64',
    says: notInstalled('darwin-arm64'),
  },
  Windows: {
    flags: ['--omit=optional'],
    disguise: { platform: 'win32', arch: 'x64', glibc: null },
    ending: 'win32-x64',
    says: notInstalled('win32-x64'),
  },
  'a platform for which nothing is built (FreeBSD)': {
    flags: ['--os=freebsd'],
    disguise: { platform: 'freebsd', arch: 'x64', glibc: null },
    ending: 'freebsd-x64',
    says: notInstalled('freebsd-x64'),
  },
};

describe('without compiled packages', () => {
  it.each(Object.entries(cases))(
    '%s',
    async (name, { flags = [], disguise, prepare, says, ending = platform }) => {
      const { room, packed, registry, work } = given;
      const project = room.project(name.replaceAll(/[^\w]+/g, '-'), files);
      const isLost = name.startsWith('lost');
      if (isLost) registry.failDownloads(`@ringwise/collectives-${platform}`, `@ringwise/tensor-${platform}`);
      const more = isLost ? ['--fetch-retries=0', '--cache', join(work, 'empty-cache')] : [];
      expect(await room.run(project, 'npm', 'install', 'ringwise', ...flags, ...more)).toMatchObject({
        code: 0,
      });
      if (isLost) registry.failDownloads();
      prepare?.(project);
      const env = disguise ? disguised(project, disguise) : {};
      const run = (...args: readonly string[]) => room.runWith(env, project, 'node', ...args);

      const ranks = await run('node_modules/ringwise/bin/ringwise.js', ...twoRanks, 'hello.mjs');
      expect(ranks).toMatchObject({ code: 0 });
      expect(sortedLines(ranks.stdout)).toEqual(helloAnswer);
      expect(ranks.stderr).toContain('RINGWISE_TCP_FALLBACK');
      const [collectives, tensor] = says(releasedFor(packed, ending));
      const { stdout } = await run('native.mjs');
      expect(stdout).toMatch(/^ERR_COLL_\w+ /);
      expect(stdout).toMatch(collectives);
      expect((await run('kernels.mjs')).stdout).toMatch(tensor);
    },
  );
});
