// Runs Node for musl on a Linux with glibc, so that binaries for musl run on this machine.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { npmPackage } from '../npm-package.mjs';
import { targets } from '../targets.mjs';
import { findZig } from '../zig.mjs';

/** pnpm as a program of its own: Node 26.0.0 for musl with a script attached. No package has that Node alone. */
const release = {
  name: '@pnpm/linuxstatic-x64',
  version: '11.21.0',
  integrity:
    'sha512-6Y2u+AfOUuTqWgTCpFhySL8HAcONDucCFixKle9tWoW7bm8RF0+fwQBRWNWGdx+Toau07wZ1LNZPqN8gpgeBDQ==',
};

/** Node runs the attached script if this text ends with 1 (lib/internal/main/single_executable). */
const fuse = Buffer.from('NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:');

/** Libraries of glibc's systems that Node needs, and which need the functions of libstdcxx.c in musl. */
const libraries = ['/usr/lib/x86_64-linux-gnu/libstdc++.so.6', '/lib/x86_64-linux-gnu/libgcc_s.so.1'];

/** Tells whether this Node itself is one for musl, as on Alpine. */
function isMuslHere() {
  process.report.excludeNetwork = true; // without it the report looks up every network interface in DNS
  return process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime;
}

/** Returns why this machine cannot run programs for musl on x64; null if it can. */
export function whyNoMusl() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'Node for musl runs on Linux x64 only';
  if (isMuslHere()) return null;
  if (!existsSync('/lib/ld-musl-x86_64.so.1')) return 'no /lib/ld-musl-x86_64.so.1 (Debian: musl)';
  const missing = libraries.filter((path) => !existsSync(path));
  return missing.length > 0 ? `no ${missing.join(', ')} (Debian: libstdc++6)` : null;
}

/**
 * Returns this Node if it is one for musl. Else writes a program into a folder that runs Node for musl, and returns its
 * path. It gets the arguments of node. In that Node, process.execPath is the program, because the file alone does not
 * find its libraries.
 */
export function muslNode(folder) {
  if (isMuslHere()) return process.execPath;
  for (const path of libraries) copyFileSync(path, join(folder, path.split('/').at(-1)));
  compileMissing(folder);
  const node = join(folder, 'node');
  writeFileSync(node, withoutScript(readFileSync(join(npmPackage(release), 'pnpm'))), { mode: 0o755 });
  const program = join(folder, 'node-musl');
  const preload = join(folder, 'exec-path.mjs');
  writeFileSync(
    preload,
    `process.execPath = ${JSON.stringify(program)};\ndelete process.env.LD_LIBRARY_PATH;\n`,
  );
  const command = [node, '--import', pathToFileURL(preload).href].map((word) => `'${word}'`).join(' ');
  writeFileSync(program, `#!/bin/sh\nexport LD_LIBRARY_PATH='${folder}'\nexec ${command} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

/** Compiles libstdcxx.c under the name of a library that libstdc++ needs and musl lacks: glibc's loader. */
function compileMissing(folder) {
  const name = 'ld-linux-x86-64.so.2';
  const source = fileURLToPath(new URL('libstdcxx.c', import.meta.url));
  const flags = ['-shared', '-fPIC', '-O2', `-Wl,-soname,${name}`, source, '-o', join(folder, name)];
  const { status, stderr, error } = spawnSync(
    findZig(),
    ['cc', `--target=${targets['linuxmusl-x64'].zig}`, ...flags],
    {
      encoding: 'utf8',
      env: {
        ...process.env,
        ZIG_GLOBAL_CACHE_DIR: join(folder, 'zig'),
        ZIG_LOCAL_CACHE_DIR: join(folder, 'zig'),
      },
    },
  );
  if (status !== 0) throw new Error(`zig cannot compile ${source}: ${error?.message ?? stderr}`);
}

/** Returns the program with its script switched off, which makes it an ordinary node. */
function withoutScript(program) {
  const at = program.indexOf(fuse);
  if (at < 0) throw new Error(`${release.name} has no attached script any more; look how it starts Node now`);
  program.write('0', at + fuse.length);
  return program;
}
