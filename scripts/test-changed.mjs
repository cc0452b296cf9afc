// `npm run test:changed`: runs the quick tests of all packages that the change in this checkout touches, and of the
// packages that use them. The change is what is not committed, and what was committed since the checkout left the main
// branch (origin/main, or main).
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';
import { affectedFolders } from './affected.mjs';
import { quickKinds } from './parts.mjs';
import { root, run } from './run.mjs';
import { vitest } from './vitest.mjs';

function git(...args) {
  try {
    return execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return null;
  }
}

const base = git('merge-base', 'HEAD', 'origin/main') ?? git('merge-base', 'HEAD', 'main');
if (base === null) {
  console.error('test:changed: there is neither origin/main nor main to compare with. Run npm test.');
  process.exit(2);
}
const list = (text) => (text ?? '').split('\n').filter(Boolean);
const files = [
  ...list(git('diff', '--name-only', base)),
  ...list(git('ls-files', '--others', '--exclude-standard')),
];
const folders = affectedFolders(root, files);
if (folders.length === 0) {
  console.log(`test:changed: ${files.length} changed files, none of which a test uses.`);
  process.exit(0);
}
console.log(`test:changed: ${files.length} changed files; tests of ${folders.join(', ')}`);
// The tests of these folders include C++ tests or use the software device, which `build:tests` builds.
const needsNativeTests = folders.some((folder) =>
  /^(native|packages\/(collectives|tensor|ringwise))$/.test(folder),
);
for (const step of needsNativeTests ? ['build', 'build:tests'] : ['build']) {
  const code = await run('npm', 'run', '-s', step);
  if (code !== 0) process.exit(code);
}
const projects = folders.flatMap((folder) => quickKinds.map((kind) => `${basename(folder)}-${kind}`));
process.exit(await vitest(projects));
