import { spawnSync } from 'node:child_process';

/** Returns the programs of a list separated by commas that can import these modules, and names the others on stderr. */
export function pythonsWith(modules: readonly string[], list: string): string[] {
  return list.split(',').filter((python) => {
    const found = spawnSync(python, ['-c', `import ${modules.join(', ')}`]).status === 0;
    if (!found) console.error(`${python}: not all of ${modules.join(', ')} are there, left out`);
    return found;
  });
}
