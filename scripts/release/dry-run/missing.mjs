// Tells for which platforms this checkout has compiled packages.
import { join } from 'node:path';
import { missingFiles } from '../gates.mjs';

/** Returns a sentence for each compiled package that lacks files, such as those of other platforms. */
export function missingBinaries(packages, root) {
  return packages.flatMap(({ folder, manifest, isCompiled }) => {
    const missing = isCompiled ? missingFiles({ folder: join(root, folder), manifest }) : [];
    return missing.length === 0 ? [] : [`${manifest.name} has no ${missing.join(', ')}.`];
  });
}
