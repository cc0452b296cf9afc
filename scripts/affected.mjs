// Finds the folders whose tests a change of some files can break. Does not find tests in scripts/ that read the files
// of a package, such as copies.test.ts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { testedFolders } from './parts.mjs';

/** Tells whether every test uses this file. */
const isCommon = (file) =>
  /^(package\.json|pnpm-[^/]*|tsconfig\.base\.json|tsup\.base\.ts|vitest\.[^/]*)$/.test(file);

/** Maps a folder to those whose tests use its sources although their package.json does not name it. */
const users = {
  native: ['packages/collectives', 'packages/tensor'],
  'packages/ringwise': ['examples'],
};

function manifestOf(root, folder) {
  const path = join(root, folder, 'package.json');
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
}

/** Returns the folders that use `folder` directly: their package.json names it, or the table above does. */
function usersOf(root, folder, folders) {
  const { name } = manifestOf(root, folder);
  const declared = folders.filter((other) => {
    const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifestOf(root, other);
    const all = { ...dependencies, ...devDependencies, ...peerDependencies, ...optionalDependencies };
    return name !== undefined && Object.hasOwn(all, name);
  });
  return [...declared, ...(users[folder] ?? [])];
}

function* testsOf(root, folder) {
  for (const entry of readdirSync(join(root, folder, 'test'), { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && path.endsWith('.ts')) yield readFileSync(path, 'utf8');
  }
}

/** Returns the tested folders that a change of `files` (paths from the root) touches, and the folders that use them. */
export function affectedFolders(root, files) {
  const folders = testedFolders(root);
  if (files.some(isCommon)) return folders;
  const found = new Set();
  const add = (folder) => {
    if (found.has(folder)) return;
    found.add(folder);
    for (const user of usersOf(root, folder, folders)) add(user);
  };
  for (const file of files) {
    const folder = [...folders, ...Object.keys(users)].find((each) => file.startsWith(`${each}/`));
    if (folder !== undefined) add(folder);
    // The file is outside of the packages, such as a page whose examples a test runs: find the tests that name it.
    else
      for (const each of folders)
        for (const text of testsOf(root, each)) if (text.includes(file)) found.add(each);
  }
  return folders.filter((folder) => found.has(folder));
}
