// Tells which platform's native addon this process needs, and what to do where none loads.

/** Oldest glibc that the addons of releases run on. */
const oldestGlibc = '2.28';

/** What this process runs on; `glibc` is its version on Linux, null on musl and outside Linux. */
export interface Host {
  readonly platform: string;
  readonly arch: string;
  readonly glibc: string | null;
}

export function thisHost(): Host {
  const { platform, arch } = process;
  return { platform, arch, glibc: platform === 'linux' ? glibcVersion() : null };
}

function glibcVersion(): string | null {
  // Node's types lack excludeNetwork. Without it the report looks up every network interface in DNS.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const { excludeNetwork } = report;
  report.excludeNetwork = true;
  const { header } = report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  report.excludeNetwork = excludeNetwork;
  return header.glibcVersionRuntime ?? null;
}

/** Returns how the packages of a platform end, such as linux-x64, linuxmusl-arm64 or darwin-arm64. */
export function platformOf({ platform, arch, glibc }: Host): string {
  return `${platform}${platform === 'linux' && glibc === null ? 'musl' : ''}-${arch}`;
}

/**
 * Returns what the user can do where no addon has loaded, in sentences. `family` is the name of the package without its
 * platform, such as @ringwise/tensor, `released` the platforms that it is released for, `tried` each path with the
 * reason why it did not load.
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
