// `node pack.mjs FOLDER [PREFIX]…`: packs all packages but those whose names begin with a prefix into the folder, and
// lists them in its packed.json.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../run.mjs';
import { readConfig } from '../config.mjs';
import { packAll } from '../pack.mjs';
import { publishedPackages, withoutPackages } from '../packages.mjs';

const [into, ...prefixes] = process.argv.slice(2);
const { kept } = withoutPackages(publishedPackages(root), prefixes);
const config = readConfig(root, { isRehearsal: true });
try {
  const packed = await packAll(kept, { root, config, into });
  writeFileSync(join(into, 'packed.json'), JSON.stringify(packed));
  console.log(`packed ${packed.length} packages of version ${packed[0].manifest.version}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
