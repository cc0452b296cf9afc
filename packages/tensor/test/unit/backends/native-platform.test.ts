// Tests which addon a platform needs, and the advice where none loads.
import { expect, it } from 'vitest';
import { adviceOn } from '../../../src/backends/native/advice.ts';
import { platformOf, thisHost } from '../../../src/backends/native/find-addon.ts';

const host = (platform: string, glibc: string | null = null) => ({ platform, arch: 'x64', glibc });
const absent = [
  "@ringwise/tensor-linux-x64/tensor.node (Cannot find module '@ringwise/tensor-linux-x64/tensor.node')",
];
const released = ['linux-x64', 'linuxmusl-x64', 'darwin-x64'];
const advice = (machine: ReturnType<typeof host>, tried: readonly string[] = absent): string =>
  adviceOn('@ringwise/tensor', released, machine, tried);

it('names platforms by system, C library and processor', () => {
  expect(platformOf(host('linux', '2.36'))).toBe('linux-x64');
  expect(platformOf(host('linux'))).toBe('linuxmusl-x64');
  expect(platformOf({ platform: 'darwin', arch: 'arm64', glibc: null })).toBe('darwin-arm64');
  expect(platformOf(host('win32'))).toBe('win32-x64');
});

it('finds what this process runs on', () => {
  const { platform, arch, glibc } = thisHost();
  expect([platform, arch]).toEqual([process.platform, process.arch]);
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  expect(glibc).toBe(header.glibcVersionRuntime ?? null);
});

it('advises to install a package that is not there', () => {
  for (const [machine, platform] of [
    [host('linux', '2.28'), 'linux-x64'],
    [host('linux'), 'linuxmusl-x64'],
    [host('darwin'), 'darwin-x64'],
  ] as const)
    expect(advice(machine)).toBe(
      `Install @ringwise/tensor-${platform}, or build it: npm run build in a checkout of ringwise. npm leaves the package out with --omit=optional, and with a lock file from another platform: delete node_modules and the lock file there, and install again.`,
    );
});

it('does not advise to install what is there', () => {
  const broken = ['@ringwise/tensor-linux-x64/tensor.node (/lib/tensor.node: file too short)'];
  expect(advice(host('linux', '2.36'), broken)).toBe(
    'The file is there and does not load, for the reason above. If nothing helps, build it: npm run build in a checkout of ringwise.',
  );
});

it('tells that glibc is too old, whether or not the package is there', () => {
  const reason = ["tensor.node (libc.so.6: version `GLIBC_2.28' not found (required by tensor.node))"];
  for (const tried of [absent, reason])
    expect(advice(host('linux', '2.17'), tried)).toBe(
      'This system has glibc 2.17, and the addons of releases need 2.28 or newer: use a newer system, or build it: npm run build in a checkout of ringwise.',
    );
});

it('tells that there is no release for a platform', () => {
  expect(advice(host('freebsd'))).toBe(
    'No release has one for this platform; build it: npm run build in a checkout of ringwise.',
  );
});
