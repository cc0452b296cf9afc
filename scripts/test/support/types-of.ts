// Checks the type declarations of an installed `ringwise`, all of them.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './clean-room.ts';

/** Returns what tsc says, without skipLibCheck, of a module in `project` that imports every entry of `ringwise`. */
export function typesOf(project: string): string {
  const manifest = readFileSync(join(project, 'node_modules/ringwise/package.json'), 'utf8');
  const { exports } = JSON.parse(manifest) as { exports: Record<string, unknown> };
  const entries = Object.keys(exports).filter((path) => !path.endsWith('.json'));
  const imports = entries.map((path, index) => `import * as m${index} from 'ringwise${path.slice(1)}';`);
  const uses = `console.log(${entries.map((_, index) => `m${index}`).join(', ')});`;
  writeFileSync(join(project, 'types.mts'), [...imports, uses].join('\n'));
  const args = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    'false',
    '--target',
    'es2023',
    '--module',
    'nodenext',
  ];
  const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node'];
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const ended = spawnSync(process.execPath, [tsc, ...args, ...types, 'types.mts'], {
    cwd: project,
    encoding: 'utf8',
    timeout: 400_000,
  });
  return ended.status === 0 ? ended.stdout : `tsc ended with ${ended.status}: ${ended.stdout}${ended.stderr}`;
}
