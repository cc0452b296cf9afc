// Finds where in the user's program a call on a group was made, as "train.ts:57", for errors and the flight
// recorder. Taking a stack trace costs microseconds, so it is taken only on request, inside the call; see
// native/coll/engine/host_group.h and flight/recorder.ts for when that happens.
import { findSourceMap } from 'node:module';
import { basename, dirname, isAbsolute, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allVerbs } from '../all-verbs.ts';
import { codeFolder } from '../package-files.ts';

// Enough frames to reach the user's line from a call in an autograd hook.
const maxFrames = 16;
const maxLength = 120;

/** Verbs of the backend. The flight record has their names already, so the location does not repeat them. */
const plainVerbs: ReadonlySet<string> = new Set(allVerbs);

// The call that this thread is in, or made last.
let caller: object = {};
let method = '';
let isSync = false;
/** Location of a call whose operations are started later, without the caller on the stack. */
let known: string | null = null;

/** Notes that a call of `object[name]`, or of `object[name + 'Sync']`, begins. */
export function entering(object: object, name: string, sync: boolean): void {
  caller = object;
  method = name;
  isSync = sync;
}

/** Runs `begin` on behalf of the call made at `site`; null stands for the call that this thread is in. */
export function inCallAt<T>(site: string | null, begin: () => T): T {
  const before = known;
  known = site;
  try {
    return begin();
  } finally {
    known = before;
  }
}

/** Returns where the current call was made: "train.ts:57", or "batch at train.ts:57"; empty if unknown. */
export function callSite(): string {
  if (known !== null) return known;
  const location = locationOf(
    callerOf((caller as Record<string, unknown>)[isSync ? `${method}Sync` : method]),
  );
  if (location === '') return '';
  return plainVerbs.has(method) ? location : `${method} at ${location}`;
}

/**
 * Returns the innermost frame of user code that called `entry`, or the innermost frame of all if there is no
 * user code. Returns undefined if `entry` is not on the stack.
 */
function callerOf(entry: unknown): NodeJS.CallSite | undefined {
  if (typeof entry !== 'function') return undefined;
  const { stackTraceLimit, prepareStackTrace } = Error;
  const holder: { stack?: NodeJS.CallSite[] } = {};
  try {
    // Reflect.set does nothing where Error is frozen, as by --frozen-intrinsics; the stack is then a text.
    Reflect.set(Error, 'stackTraceLimit', maxFrames);
    Reflect.set(Error, 'prepareStackTrace', (_: Error, sites: NodeJS.CallSite[]) => sites);
    Error.captureStackTrace(holder, entry as (...args: never) => unknown);
    if (!Array.isArray(holder.stack)) return undefined;
    const sites = holder.stack.filter((site) => sourceOf(site) !== null);
    return sites.find((site) => !sourceOf(site)!.isOurs) ?? sites[0];
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
    Reflect.set(Error, 'prepareStackTrace', prepareStackTrace);
  }
}

interface Source {
  readonly file: string;
  readonly isOurs: boolean;
}

/** Cache by the file name of a frame. Parsing the name as a URL would dominate the cost. */
const sources = new Map<string, Source | null>();

/** Returns the file of a frame, or null for frames of Node.js itself. */
function sourceOf(site: NodeJS.CallSite): Source | null {
  const name = site.getFileName();
  if (!name) return null;
  let source = sources.get(name);
  if (source === undefined) {
    const file = pathOf(name);
    source = name.startsWith('node:') ? null : { file, isOurs: isOurs(file) };
    sources.set(name, source);
  }
  return source;
}

function pathOf(name: string): string {
  return name.startsWith('file:') ? fileURLToPath(name) : name;
}

/** The folder that contains our packages side by side: a scope of node_modules, or `packages` of the repository. */
const scope = dirname(dirname(codeFolder)) + sep;

/** Returns whether `file` belongs to one of our packages and is not one of its tests. */
function isOurs(file: string): boolean {
  if (file.includes(`${sep}@ringwise${sep}`)) return true;
  const [, folder] = file.startsWith(scope) ? file.slice(scope.length).split(sep) : [];
  return folder === 'dist' || folder === 'src';
}

const locations = new Map<string, string>();

function locationOf(site: NodeJS.CallSite | undefined): string {
  const [line, column] = [site?.getLineNumber(), site?.getColumnNumber()];
  if (site === undefined || !line) return '';
  const { file } = sourceOf(site)!;
  const key = `${file}:${line}:${column}`;
  let location = locations.get(key);
  if (location === undefined) {
    location = inSource({ file, line, column: column ?? 1 }).slice(-maxLength);
    locations.set(key, location);
  }
  return location;
}

interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Returns file and line, translated by the source map if the file was compiled. */
function inSource({ file, line, column }: Location): string {
  const entry = findSourceMap(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !('originalSource' in entry)) return `${shortened(file)}:${line}`;
  return `${shortened(pathOf(entry.originalSource))}:${entry.originalLine + 1}`;
}

/** Returns the path relative to the working directory, or only the file name for a file outside it. */
function shortened(file: string): string {
  const path = relative(process.cwd(), file);
  return isAbsolute(path) || path.startsWith('..') ? basename(file) : path;
}
