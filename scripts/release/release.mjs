// `npm run release`: publishes all packages of this checkout, which must be built for every platform. With --check it
// does everything but publish. Refuses if release.config.json has something to do, if a file is missing, or if a gate
// finds a fault. --without NAME leaves out the packages whose names begin so, if no other one installs them. A workflow
// runs this with --provenance; it can be repeated after an interruption.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../run.mjs';
import { readConfig, todosOf } from './config.mjs';
import { faultsOfPackage, faultsOfSizes } from './gates.mjs';
import { faultsOfLint } from './lint.mjs';
import { packAll } from './pack.mjs';
import { publishedPackages, withoutPackages } from './packages.mjs';
import { publishAll } from './publish-all.mjs';

const { values } = parseArgs({
  options: {
    check: { type: 'boolean' },
    config: { type: 'string', default: 'release.config.json' },
    provenance: { type: 'boolean' },
    tag: { type: 'string' },
    without: { type: 'string', multiple: true, default: [] },
  },
});

function refuse(faults) {
  console.error(
    `release: nothing was published, because of\n${faults.map((fault) => `  ${fault}`).join('\n')}`,
  );
  process.exit(1);
}

const config = readConfig(root, { isRehearsal: false, file: values.config });
const todos = todosOf(config);
if (todos.length > 0) refuse(todos);
const { kept, faults: strays } = withoutPackages(publishedPackages(root), values.without);
if (strays.length > 0) refuse(strays);
const into = mkdtempSync(join(tmpdir(), 'ringwise-release-'));
process.once('exit', () => rmSync(into, { recursive: true, force: true }));
try {
  const packed = await packAll(kept, { root, config, into });
  const faults = [
    ...packed.flatMap((entry) => faultsOfPackage(entry, config)),
    ...faultsOfSizes(packed),
    ...(await faultsOfLint(packed)),
  ];
  if (faults.length > 0) refuse(faults);
  if (values.check) {
    console.log(`release: ${packed.length} packages may be published.`);
  } else {
    const args = [
      ...(values.provenance ? ['--provenance'] : []),
      ...(values.tag === undefined ? [] : ['--tag', values.tag]),
    ];
    await publishAll(packed, { args, report: (line) => console.log(`release: ${line}`) });
  }
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}
