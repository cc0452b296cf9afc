// The sentences about a native addon that cannot be loaded, for what other platforms would tell.
import { expect, it } from 'vitest';
import { type NativeFacts, whyNoNative } from '../../../src/backends/why-no-native.ts';

const facts: NativeFacts = {
  platform: 'linux-x64',
  glibc: '2.36',
  built: ['linux-arm64', 'linux-x64', 'linuxmusl-x64'],
  installed: [],
  tried: ['@ringwise/collectives-linux-x64/coll.node (Cannot find module)'],
};
const tooOld =
  "@ringwise/collectives-linux-x64/coll.node (/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.36' not found)";

it.each<[string, Partial<NativeFacts>, string, string]>([
  [
    'a platform without a package',
    { platform: 'win32-x64', glibc: null },
    'there is no native addon for win32-x64: no package is built for win32-x64 (tried ',
    'Use the tcp backend, or build it: npm run build in a checkout of ringwise.',
  ],
  [
    'musl',
    { platform: 'linuxmusl-x64', glibc: null },
    '@ringwise/collectives-linuxmusl-x64 is not installed; it is an optional dependency,',
    'Install @ringwise/collectives-linuxmusl-x64, or build it:',
  ],
  [
    'node_modules of a glibc on musl',
    { platform: 'linuxmusl-x64', glibc: null, installed: ['linux-x64'] },
    '@ringwise/collectives-linuxmusl-x64 is not installed, but @ringwise/collectives-linux-x64 is: the folder node_modules is from another platform, because this Linux has musl instead of glibc',
    'Install @ringwise/collectives-linuxmusl-x64 here with npm install,',
  ],
  [
    'musl on a processor without a package',
    { platform: 'linuxmusl-riscv64', glibc: null },
    'no package is built for linuxmusl-riscv64',
    'Use the tcp backend,',
  ],
  [
    'a glibc that is too old',
    { glibc: '2.31', installed: ['linux-x64'], tried: [tooOld] },
    '@ringwise/collectives-linux-x64 needs GLIBC 2.36, and this system has 2.31',
    'Use a newer system or the tcp backend,',
  ],
  [
    'a package that is broken',
    { installed: ['linux-x64'] },
    '@ringwise/collectives-linux-x64 is installed, but cannot be loaded',
    'Install @ringwise/collectives-linux-x64 again,',
  ],
  [
    'node_modules of another platform',
    { installed: ['linux-arm64'] },
    '@ringwise/collectives-linux-x64 is not installed, but @ringwise/collectives-linux-arm64 is: the folder node_modules is from another platform',
    'Install @ringwise/collectives-linux-x64 here with npm install,',
  ],
  [
    'an optional dependency that was left out',
    {},
    '@ringwise/collectives-linux-x64 is not installed; it is an optional dependency, which npm leaves out with --omit=optional, with a lock file of another platform, and if its download fails',
    'Install @ringwise/collectives-linux-x64, or build it:',
  ],
])('says what is the matter with %s', (_, differing, what, next) => {
  const failure = whyNoNative({ ...facts, ...differing });
  expect(failure).toMatchObject({ code: 'ERR_COLL_INIT', verb: 'init' });
  expect(failure.what).toContain(what);
  expect(failure.next).toContain(next);
});
