// Explains why the native addon of this platform cannot be loaded. The facts are collected separately from the
// sentence, so that tests can check the sentences of other platforms.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Failure } from '../errors.ts';
import { nativeMissing } from '../init/errors.ts';
import { platformOf, thisHost } from './find-addon.ts';

/** What the process knows about the platform and the installed packages. */
export interface NativeFacts {
  /** For example 'linux-x64', or 'linuxmusl-x64' if the C library is musl. */
  readonly platform: string;
  /** Version of glibc; null if the C library is another one. */
  readonly glibc: string | null;
  /** Platforms for which there is a package, as this package's manifest lists them. */
  readonly built: readonly string[];
  /** Platforms whose package is installed. */
  readonly installed: readonly string[];
  /** Why each path could not be loaded. */
  readonly tried: readonly string[];
}

const family = '@ringwise/collectives-';

export function nativeFacts(tried: readonly string[]): NativeFacts {
  const built = builtPlatforms();
  const host = thisHost();
  const require = createRequire(import.meta.url);
  const isInstalled = (platform: string) => {
    try {
      require.resolve(`${family}${platform}/package.json`);
      return true;
    } catch {
      return false;
    }
  };
  return {
    platform: platformOf(host),
    glibc: host.glibc,
    built,
    installed: built.filter(isInstalled),
    tried,
  };
}

function builtPlatforms(): string[] {
  // Relative to src/backends, or to dist once it is built.
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const text = readFileSync(new URL(path, import.meta.url), 'utf8');
      const { name, optionalDependencies = {} } = JSON.parse(text) as {
        name?: string;
        optionalDependencies?: Record<string, string>;
      };
      if (name !== '@ringwise/collectives') continue;
      return Object.keys(optionalDependencies).flatMap((dependency) =>
        dependency.startsWith(family) ? [dependency.slice(family.length)] : [],
      );
    } catch {
      // The other path has the manifest.
    }
  }
  return [];
}

const musl = (platform: string) =>
  platform.startsWith('linuxmusl') ? ', because this Linux has musl instead of glibc' : '';

/** Returns the failure of a process that cannot load the native addon. */
export function whyNoNative({ platform, glibc, built, installed, tried }: NativeFacts): Failure {
  const needed = `${family}${platform}`;
  const build = 'or build it: npm run build in a checkout of ringwise';
  if (!built.includes(platform)) {
    const reason = `no package is built for ${platform}`;
    return nativeMissing(platform, reason, tried, `Use the tcp backend, ${build}.`);
  }
  if (installed.includes(platform)) {
    const wanted = tried.map((text) => /version [`'"]?(GLIBC_[\d.]+)/.exec(text)?.[1]).find(Boolean);
    if (wanted !== undefined) {
      const reason = `${needed} needs ${wanted.replace('_', ' ')}, and this system has ${glibc ?? 'none'}`;
      return nativeMissing(platform, reason, tried, `Use a newer system or the tcp backend, ${build}.`);
    }
    const reason = `${needed} is installed, but cannot be loaded`;
    return nativeMissing(platform, reason, tried, `Install ${needed} again, ${build}.`);
  }
  if (installed.length > 0) {
    const others = installed.map((name) => family + name).join(', ');
    const reason = `${needed} is not installed, but ${others} is: the folder node_modules is from another platform${musl(platform)}`;
    return nativeMissing(platform, reason, tried, `Install ${needed} here with npm install, ${build}.`);
  }
  const reason = `${needed} is not installed; it is an optional dependency, which npm leaves out with --omit=optional, with a lock file of another platform, and if its download fails`;
  return nativeMissing(platform, reason, tried, `Install ${needed}, ${build}.`);
}
