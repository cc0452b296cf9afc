// Data sets written in TypeScript where Node cannot run that by itself: by tsx, as the launcher runs ranks. Node strips types
// from 22.18 on, and knows `using`, which TypeScript has, from 24 on.
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Script } from 'node:vm';
import { noTypeScript } from '../errors.ts';

/** The modules whose register() a worker calls, in order, before it can import `url`; none where Node imports it. */
export function registrarsFor(url: string): readonly string[] {
  // A program that runs under tsx may import TypeScript from everywhere.
  if (process.execArgv.some((argument) => /(^|[\\/])tsx([\\/]|$)/.test(argument))) return tsxFor(url) ?? [];
  const isJsx = /\.[jt]sx$/.test(url);
  if (!isJsx && !/\.[cm]?ts$/.test(url)) return [];
  if (!isJsx && stripsTypes() && knowsUsing()) return [];
  const registrars = tsxFor(url);
  if (registrars === null && (isJsx || !stripsTypes())) throw noTypeScript(url);
  return registrars ?? [];
}

/** tsx's registrars; null where it is not installed. The data set's own tsx comes first: its version is the user's choice. */
function tsxFor(url: string): readonly string[] | null {
  for (const base of [url, import.meta.url]) {
    try {
      const { resolve } = createRequire(fileURLToPath(base));
      const [cjs, esm] = ['tsx/cjs/api', 'tsx/esm/api'].map((name) => pathToFileURL(resolve(name)).href);
      // require() finds the CommonJS twin, which cannot register for modules.
      return [cjs!, esm!.replace(/\.cjs$/, '.mjs')];
    } catch {
      // Not installed there.
    }
  }
  return null;
}

/** Lets this thread import TypeScript from now on. */
export async function register(registrars: readonly string[]): Promise<void> {
  for (const registrar of registrars) ((await import(registrar)) as { register: () => void }).register();
}

const refusals = ['ERR_UNKNOWN_FILE_EXTENSION', 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX'];

/** Imports a module into a thread of the program, which may run TypeScript already, or be able to with tsx. */
export async function importHere(url: string): Promise<unknown> {
  try {
    return await import(url);
  } catch (error) {
    if (!refusals.includes((error as { readonly code?: string } | null)?.code ?? '')) throw error;
    const registrars = tsxFor(url);
    if (registrars === null) throw noTypeScript(url, error);
    await register(registrars);
    // Under another address, since Node remembers that the first import failed.
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
