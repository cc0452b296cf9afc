// Reads compiled files of all platforms: our own, and those that pnpm and other tools bring along.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compareVersions, newestVersion, readBinary } from '../../../cross/binary.mjs';
import { faultsOfBinary } from '../../../cross/faults.mjs';

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL('../../../..', import.meta.url));
const ours = (file: string) => join(root, 'native/npm', file);
const reflink = (name: string) => join(root, `node_modules/pnpm/dist/reflink.${name}.node`);
/** The addon of sharp, which needs a library of its own. */
const sharp = (): string => {
  const folder = dirname(createRequire(require.resolve('sharp')).resolve('@img/sharp-linux-x64/package'));
  const name = readdirSync(join(folder, 'lib')).find((file) => file.endsWith('.node'));
  return join(folder, 'lib', name!);
};
const addonExports = ['napi_register_module_v1'];

let work = '';
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'ringwise-binary-'));
});
afterAll(() => rmSync(work, { recursive: true }));

/** Returns a copy of a file with some bytes changed. */
function altered(path: string, name: string, change: (bytes: Buffer) => Buffer): string {
  const copy = join(work, name);
  writeFileSync(copy, change(readFileSync(path)));
  return copy;
}

/** Returns bytes in which `after` replaces the first of `before`. */
function overwritten(bytes: Buffer, before: readonly number[], after: readonly number[]): Buffer {
  const at = bytes.indexOf(Buffer.from(before));
  expect(at).toBeGreaterThan(0);
  bytes.set(after, at);
  return bytes;
}

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('a compiled file', () => {
  it('for Linux tells processor, C library, symbol versions and exports', () => {
    const facts = readBinary(ours('tensor-linux-x64/tensor.node'));
    expect(facts).toMatchObject({ format: 'elf', os: 'linux', cpu: 'x64', libc: 'glibc', minimumOs: null });
    expect(facts!.libraries).toContain('libc.so.6');
    expect(facts!.exports).toEqual(expect.arrayContaining(addonExports));
    expect(facts!.exports).not.toContain('napi_create_function'); // Node has it: the addon needs it
    expect(newestVersion(facts!.versions, 'GLIBC_')).toMatch(/^2\.\d+$/);
  });

  it.each([
    ['darwin-arm64-2HJ4WGO6', { format: 'mach-o', os: 'darwin', cpu: 'arm64', minimumOs: '11.0' }],
    ['darwin-x64-3G3H6IW4', { format: 'mach-o', os: 'darwin', cpu: 'x64' }],
    ['win32-arm64-msvc-Q6BARPPB', { format: 'pe', os: 'win32', cpu: 'arm64' }],
    ['win32-x64-msvc-J2TZHRQI', { format: 'pe', os: 'win32', cpu: 'x64' }],
  ])('for another system tells the same (%s)', (name, expected) => {
    const facts = readBinary(reflink(name));
    expect(facts).toMatchObject({ ...expected, libc: null, versions: [] });
    expect(facts!.exports).toEqual(expect.arrayContaining(addonExports));
    expect(facts!.libraries.length).toBeGreaterThan(0);
  });

  it('is no other file, and is complete', () => {
    expect(readBinary(ours('tensor-linux-x64/package.json'))).toBeNull();
    const cut = altered(sharp(), 'cut.node', (bytes) => bytes.subarray(0, 100));
    expect(() => readBinary(cut)).toThrow(`${cut} cannot be read as a compiled file`);
    expect(faultsOfBinary(cut, 'linux-x64').join()).toMatch(/cut\.node cannot be read as a compiled file/);
  });
});

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('a check of a compiled file', () => {
  it('finds another processor, C library or system', () => {
    const addon = ours('collectives-linux-x64/coll.node');
    const found = `${addon} is for linux-x64-glibc; expected`;
    expect(faultsOfBinary(addon, 'linux-arm64')).toEqual([`${found} linux-arm64-glibc.`]);
    expect(faultsOfBinary(addon, 'linuxmusl-x64')).toEqual([`${found} linux-x64-musl.`]);
    const other = reflink('darwin-x64-3G3H6IW4');
    expect(faultsOfBinary(other, 'linux-x64')).toEqual([
      `${other} is for darwin-x64; expected linux-x64-glibc.`,
    ]);
    const text = ours('collectives-linux-x64/package.json');
    expect(faultsOfBinary(text, 'linux-x64')).toEqual([
      `${text} is no compiled file; expected one for linux-x64.`,
    ]);
  });

  it('finds a file for a newer Windows, and one that needs what not every Windows has', () => {
    const path = reflink('win32-x64-msvc-J2TZHRQI');
    const newer = altered(path, 'windows.node', (bytes) => {
      bytes.writeUInt16LE(11, bytes.readUInt32LE(60) + 24 + 48); // the version of the subsystem
      return bytes;
    });
    const fault = `${newer} needs win32 11.0; expected at most 10.0.`;
    expect(faultsOfBinary(newer, 'win32-x64')).toContain(fault);
    const faults = faultsOfBinary(path, 'win32-x64').join();
    expect(faults).toMatch(/needs [^;]*VCRUNTIME140\.dll[^;]*, which not every win32 has/);
    expect(faults).not.toMatch(/needs win32|KERNEL32/);
  });

  it('finds symbols that are too new', () => {
    // The versions of symbols are text. 2.9 is as long as 2.4, and some are that old.
    const path = altered(ours('tensor-linux-x64/tensor.node'), 'new.node', (bytes) => {
      const text = bytes.toString('latin1').replace(/GLIBC_2\.[3-9]\0/, 'GLIBC_3.1\0');
      return Buffer.from(text, 'latin1');
    });
    expect(faultsOfBinary(path, 'linux-x64')).toContain(`${path} needs glibc 3.1; expected at most 2.28.`);
  });

  it('finds an unsigned file for Apple silicon', () => {
    const signed = reflink('darwin-arm64-2HJ4WGO6');
    // The load command LC_CODE_SIGNATURE becomes one that does not exist.
    const unsigned = altered(signed, 'unsigned.node', (bytes) =>
      overwritten(bytes, [0x1d, 0, 0, 0, 16, 0, 0, 0], [0x7d]),
    );
    expect(faultsOfBinary(unsigned, 'darwin-arm64')).toContain(`${unsigned} has no code signature.`);
    expect(faultsOfBinary(signed, 'darwin-arm64').join()).not.toContain('signature');
    // Intel processors need none.
    expect(faultsOfBinary(reflink('darwin-x64-3G3H6IW4'), 'darwin-x64').join()).not.toContain('signature');
  });

  it('finds a file for newer systems', () => {
    const path = reflink('darwin-arm64-2HJ4WGO6');
    // LC_BUILD_VERSION for macOS 11.0 becomes one for 12.0.
    const newer = altered(path, 'newer.node', (bytes) =>
      overwritten(bytes, [1, 0, 0, 0, 0, 0, 11, 0], [1, 0, 0, 0, 0, 0, 12, 0]),
    );
    const fault = `${newer} needs darwin 12.0; expected at most 11.0.`;
    expect(faultsOfBinary(newer, 'darwin-arm64')).toContain(fault);
    expect(faultsOfBinary(path, 'darwin-arm64').join()).not.toContain('needs darwin');
    // It runs on older systems than it has to.
    expect(faultsOfBinary(reflink('darwin-x64-3G3H6IW4'), 'darwin-x64').join()).not.toContain('needs darwin');
  });

  it('finds libraries that a system may lack', () => {
    const faults = faultsOfBinary(sharp(), 'linux-x64').join();
    expect(faults).toMatch(/needs libvips-cpp\.so[^ ]*.*, which not every linux has; link it statically\./);
  });

  it('finds missing exports', () => {
    const path = altered(ours('collectives-linux-x64/coll.node'), 'coll.node', (bytes) =>
      Buffer.from(
        bytes.toString('latin1').replaceAll('napi_register_module_v1', 'napi_register_module_v2'),
        'latin1',
      ),
    );
    expect(faultsOfBinary(path, 'linux-x64')).toContain(`${path} does not export napi_register_module_v1.`);
  });

  it("finds a file that does not use the C library's memcpy()", () => {
    mkdirSync(join(work, 'copying'), { recursive: true });
    const path = ours('tensor-linux-x64/tensor.node');
    expect(readBinary(path)!.imports).toEqual(expect.arrayContaining(['memcpy', 'napi_create_function']));
    const other = altered(path, 'copying/tensor.node', (bytes) =>
      Buffer.from(bytes.toString('latin1').replaceAll('memcpy', 'memcpz'), 'latin1'),
    );
    expect(faultsOfBinary(other, 'linux-x64').join()).toContain('has a memcpy() of its own');
    expect(faultsOfBinary(path, 'linux-x64').join()).not.toContain('memcpy');
  });

  it('finds a file that is too large', () => {
    mkdirSync(join(work, 'large'), { recursive: true });
    const path = altered(ours('collectives-linux-x64/coll.node'), 'large/coll.node', (bytes) =>
      Buffer.concat([bytes, Buffer.alloc(3e6)]),
    );
    expect(faultsOfBinary(path, 'linux-x64').join()).toMatch(/has \d+ bytes; expected at most 2500000\./);
  });
});

it('compares versions number by number', () => {
  expect(['2.28', '2.4', '2.2.5', '2.17'].sort(compareVersions)).toEqual(['2.2.5', '2.4', '2.17', '2.28']);
  expect(newestVersion(['GLIBC_2.4', 'GLIBC_2.17', 'GLIBC_PRIVATE', 'OTHER_9'], 'GLIBC_')).toBe('2.17');
  expect(newestVersion(['OTHER_9'], 'GLIBC_')).toBeNull();
});
