// Runs data sets written in TypeScript with tsx if Node.js cannot run them itself, as the launcher does for ranks.
// Node.js strips types from version 22.18 on; it supports `using`, which TypeScript also has, from version 24 on.
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { noTypeScript } from '../errors.ts';

/**
 * Returns the modules whose register() a worker must call, in order, before it can import `url`; none if Node.js can
 * import it. Throws ERR_DATA_MODULE if tsx is needed and not installed.
 */
export function registrarsFor(url: string): readonly string[] {
  // A program that runs under tsx can import TypeScript from anywhere.
  if (process.execArgv.some((argument) => /(^|[\\/])tsx([\\/]|$)/.test(argument))) return tsxFor(url) ?? [];
  const isJsx = /\.[jt]sx$/.test(url);
  if (!isJsx && !/\.[cm]?ts$/.test(url)) return [];
  if (!isJsx && stripsTypes() && knowsUsing()) return [];
  const registrars = tsxFor(url);
  if (registrars === null && (isJsx || !stripsTypes())) throw noTypeScript(url);
  return registrars ?? [];
}

/**
 * Returns the modules of tsx that have a register() function, or null if tsx is not installed. Prefers the tsx that is
 * installed for the data set, because its version is the user's choice.
 */
function tsxFor(url: string): readonly string[] | null {
  for (const base of [url, import.meta.url]) {
    try {
      const { resolve } = createRequire(fileURLToPath(base));
      const [cjs, esm] = ['tsx/cjs/api', 'tsx/esm/api'].map((name) => pathToFileURL(resolve(name)).href);
      // require() resolves to the CommonJS version, which cannot register a loader for ES modules.
      return [cjs!, esm!.replace(/\.cjs$/, '.mjs')];
    } catch {
      // Not installed in that folder.
    }
  }
  return null;
}

/** Enables this thread to import TypeScript. */
export async function register(registrars: readonly string[]): Promise<void> {
  for (const registrar of registrars) ((await import(registrar)) as { register: () => void }).register();
}

/** Codes of the errors with which Node.js refuses TypeScript. */
const refusals = ['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'];

/** Imports a module into the calling thread, with tsx if necessary. Rejects with ERR_DATA_MODULE if tsx is missing. */
export async function importHere(url: string): Promise<unknown> {
  try {
    return await import(url);
  } catch (error) {
    if (!refusals.includes((error as { readonly code?: string } | null)?.code ?? '')) throw error;
    const registrars = tsxFor(url);
    if (registrars === null) throw noTypeScript(url, error);
    await register(registrars);
    // A different URL, because Node.js caches the failure of the first import.
    return await import(`${url}?ringwise`);
  }
}

function stripsTypes(): boolean {
  return Boolean((process.features as { readonly typescript?: unknown }).typescript);
}

function knowsUsing(): boolean {
  try {
    new Script('{ using resource = null; }');
    return true;
  } catch {
    return false;
  }
}
