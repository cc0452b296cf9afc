// Advice for the user if no native addon can be loaded.
import { type Host, platformOf } from './find-addon.ts';

/** Oldest glibc that the addons of releases run on. */
const oldestGlibc = '2.28';

/**
 * Returns advice, in sentences, if no addon could be loaded. `family` is the name of the package without its platform,
 * such as @ringwise/tensor; `released` lists the platforms that it is released for; `tried` has each path with the
 * reason why it could not be loaded.
 */
export function adviceOn(
  family: string,
  released: readonly string[],
  host: Host,
  tried: readonly string[],
): string {
  const platform = platformOf(host);
  const build = 'build it: npm run build in a checkout of ringwise.';
  if (!released.includes(platform)) return `No release has one for this platform; ${build}`;
  if (host.glibc !== null && isOlder(host.glibc, oldestGlibc))
    return `This system has glibc ${host.glibc}, and the addons of releases need ${oldestGlibc} or newer: use a newer system, or ${build}`;
  const isAbsent = tried.every((reason) => /cannot find (module|package)/i.test(reason));
  if (!isAbsent)
    return `The file is there and does not load, for the reason above. If nothing helps, ${build}`;
  return (
    `Install ${family}-${platform}, or ${build} npm leaves the package out with --omit=optional, and with a lock ` +
    'file from another platform: delete node_modules and the lock file there, and install again.'
  );
}

/** Compares versions such as 2.17 and 2.28. */
function isOlder(version: string, than: string): boolean {
  const [major, minor] = version.split('.').map(Number) as [number, number];
  const [oldMajor, oldMinor] = than.split('.').map(Number) as [number, number];
  return major < oldMajor || (major === oldMajor && minor < oldMinor);
}
