// Installs the packages that build the site, by the lock file of this folder, unless they are there already.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const lock = `${folder}package-lock.json`;
const installed = `${folder}node_modules/.installed-lock.json`;

if (!existsSync(installed) || readFileSync(installed, 'utf8') !== readFileSync(lock, 'utf8')) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' });
  if (status !== 0) {
    console.error('docs: npm ci failed in docs-site; the site needs its packages. See the output above.');
    process.exit(status ?? 1);
  }
  copyFileSync(lock, installed);
}
