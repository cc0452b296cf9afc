// Finds native addons: in the folder RINGWISE_NATIVE_PATH, or in the package of this platform. collectives and tensor
// have equal copies of this file, because they must not import each other.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';

/** The addon and the file that was loaded, or no addon. `tried` has each path that failed, with the reason. */
export type Found<T> =
  | { readonly addon: T; readonly path: string; readonly tried: readonly string[] }
  | {
      readonly addon?: undefined;
      readonly path?: undefined;
      readonly tried: readonly string[];
      /** The error of the first path. */
      readonly cause: unknown;
    };

/** Loads NAME.node from the folder, else from the package `family`-PLATFORM, such as @ringwise/tensor-linux-x64. */
export function findAddon<T>(name: string, family: string): Found<T> {
  const require = createRequire(import.meta.url);
  const folder = process.env.RINGWISE_NATIVE_PATH;
  const tried: string[] = [];
  let cause: unknown;
  const load = (path: string): Found<T> | null => {
    try {
      return { addon: require(path) as T, path: require.resolve(path), tried };
    } catch (error) {
      cause ??= error;
      tried.push(`${path} (${(error as Error).message.split('\n')[0]})`);
      return null;
    }
  };
  const own = folder ? resolve(folder, `${name}.node`) : null;
  const chosen = own === null ? null : load(own);
  if (chosen !== null) return chosen;
  const packaged = load(`${family}-${nativePlatform()}/${name}.node`);
  // A folder may have the addon of another package alone, but one that is not there is a mistake.
  if (packaged !== null && own !== null && (existsSync(own) || !existsSync(dirname(own))))
    process.emitWarning(`RINGWISE_NATIVE_PATH: cannot load ${tried[0]}; the installed package's is used.`, {
      code: 'RINGWISE_NATIVE_PATH',
    });
  return packaged ?? { tried, cause };
}

/**
 * Returns the same as platformOf(thisHost()), in less than a millisecond. An addon for glibc is not even tried on musl:
 * with a compatibility layer it may load, and crash later.
 */
function nativePlatform(): string {
  const { platform, arch } = process;
  const processor = { x64: 'x86_64', arm64: 'aarch64' }[arch as string] ?? arch;
  const isMuslThere = platform === 'linux' && existsSync(`/lib/ld-musl-${processor}.so.1`);
  return isMuslThere && usesMusl() ? `linuxmusl-${arch}` : `${platform}-${arch}`;
}

/** Returns whether this process on Linux has musl. Hosts with glibc can have musl too, so its presence says nothing. */
function usesMusl(): boolean {
  try {
    return /\/(?:ld-musl-|libc\.musl-|[^/\n]*-linux-musl\/libc\.so)/.test(
      readFileSync('/proc/self/maps', 'utf8'),
    );
  } catch {
    return thisHost().glibc === null; // without /proc
  }
}

/** The system that this process runs on. `glibc` is its version on Linux; null on musl and outside Linux. */
export interface Host {
  readonly platform: string;
  readonly arch: string;
  readonly glibc: string | null;
}

let glibc: string | null | undefined;

/** Takes tens of milliseconds on Linux at the first call, because it makes a diagnostic report. */
export function thisHost(): Host {
  const { platform, arch } = process;
  if (platform !== 'linux') return { platform, arch, glibc: null };
  if (glibc === undefined) glibc = glibcVersion();
  return { platform, arch, glibc };
}

function glibcVersion(): string | null {
  // Node's types lack excludeNetwork. Without it the report looks up every network interface in DNS. The report also
  // has this call's stack, for which source maps would be parsed.
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean };
  const { excludeNetwork } = report;
  const { stackTraceLimit } = Error;
  report.excludeNetwork = true;
  Reflect.set(Error, 'stackTraceLimit', 0);
  const { header } = report.getReport() as unknown as { header: { glibcVersionRuntime?: string } };
  report.excludeNetwork = excludeNetwork;
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  return header.glibcVersionRuntime ?? null;
}

/** Returns the suffix of a platform's packages, such as linux-x64, linuxmusl-arm64 or darwin-arm64. */
export function platformOf({ platform, arch, glibc }: Host): string {
  return `${platform}${platform === 'linux' && glibc === null ? 'musl' : ''}-${arch}`;
}
