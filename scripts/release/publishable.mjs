// Makes the manifest and the README of a package ready for a registry.
import { posix } from 'node:path';

/** Returns the manifest with what release.config.json says. `folder` is the package's, from the root. */
export function filledManifest(manifest, config, folder) {
  const { scripts, devDependencies, ...published } = manifest;
  return {
    ...published,
    author: config.author,
    homepage: `${config.repository}/tree/${config.branch}/${folder}#readme`,
    bugs: { url: `${config.repository}/issues` },
    repository: { type: 'git', url: `git+${config.repository}.git`, directory: folder },
    publishConfig: { access: 'public' },
  };
}

/**
 * Returns a README whose links to other files of the repository are addresses, because a registry shows the README
 * without the repository. `folder` is the package's, from the root.
 */
export function absoluteLinks(markdown, config, folder) {
  return markdown.replace(/\]\(((?:\.\.?|[\w-]+)\/[^)#\s:]*)(#[^)\s]*)?\)/g, (_, path, anchor = '') => {
    const target = posix.normalize(posix.join(folder, path));
    return `](${config.repository}/blob/${config.branch}/${target}${anchor})`;
  });
}
