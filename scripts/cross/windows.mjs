// What a build for Windows needs besides the compiler.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const machines = { x64: 'i386:x86-64', arm64: 'arm64' };

/** Returns the lines of a CMake toolchain file for Windows. `tool` writes a script that runs a subcommand of zig. */
export const windowsLines = (tool) => [
  `set(CMAKE_RC_COMPILER "${tool('rc', 'rc')}")`,
  // CMake would take pthread.h for the header of a library to link.
  'set(CMAKE_HAVE_LIBC_PTHREAD ON CACHE BOOL "")',
  // Zig links what is needed; CMake would name many more libraries.
  'set(CMAKE_C_STANDARD_LIBRARIES "" CACHE STRING "")',
  'set(CMAKE_CXX_STANDARD_LIBRARIES "" CACHE STRING "")',
];

/**
 * Writes the import library through which an addon finds the functions of node.exe, and returns its path. `definitions`
 * are the files that list these functions.
 */
export function writeNodeLibrary(folder, zig, { cpu }, definitions) {
  const definition = join(folder, 'node.def');
  const library = join(folder, 'libnode.a');
  const names = Object.values(definitions).flatMap((path) =>
    readFileSync(path, 'utf8')
      .split(/\r?\n/)
      .filter((line) => /^(napi|node_api)_\w+$/.test(line)),
  );
  writeFileSync(definition, ['LIBRARY node.exe', 'EXPORTS', ...names, ''].join('\n'));
  const args = ['dlltool', '-m', machines[cpu], '-d', definition, '-l', library];
  const { status, stderr, error } = spawnSync(zig, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`zig dlltool ended with ${status}: ${error?.message ?? stderr}`);
  return library;
}
