// Runs the code blocks that are marked as runnable (```js runnable): each is a program in a folder of its own, beside
// the packages, and has to end with exit code 0.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { publicPackages } from '../../scripts/docs/exports.mjs';
import { blocksOf, readPage } from '../../scripts/docs/pages.mjs';

/** Runs the runnable blocks of these pages. Returns how many ran; throws with the output of the first that failed. */
export function runBlocks(paths) {
  let count = 0;
  for (const path of paths) {
    for (const { language, marks, line, text } of blocksOf(readPage(path))) {
      if (language !== 'js' || !marks.includes('runnable')) continue;
      const { status, output } = run(text);
      if (status !== 0) throw new Error(`docs: the block at ${path}:${line} ended with ${status}\n${output}`);
      count++;
    }
  }
  return count;
}

function run(text) {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-docs-'));
  try {
    mkdirSync(join(folder, 'node_modules/@ringwise'), { recursive: true });
    for (const name of publicPackages()) {
      const link = name === 'ringwise' ? name : `@ringwise/${name}`;
      symlinkSync(resolve('packages', name), join(folder, 'node_modules', link));
    }
    writeFileSync(join(folder, 'block.mjs'), text);
    const options = { cwd: folder, encoding: 'utf8', timeout: 60_000 };
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, ['block.mjs'], options);
    return { status: status ?? signal, output: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
