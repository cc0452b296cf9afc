// Where in the user's program a call on a group was made, as "train.ts:57": for errors and the flight recorder. Taking
// a stack costs microseconds, so it is taken only when somebody asks, inside the call; see native/coll/engine/host_group.h
// and flight/recorder.ts for when that is.
import { findSourceMap } from 'node:module';
import { basename, dirname, isAbsolute, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allVerbs } from '../all-verbs.ts';
import { codeFolder } from '../package-files.ts';

// As many as lie between a call in a hook of an autograd and the line that ran it.
const maxFrames = 16;
const maxLength = 120;

/** What the backend's verbs are called: the record has these names anyway. */
const plainVerbs: ReadonlySet<string> = new Set(allVerbs);

// The call that this thread is in, or was in last.
let caller: object = {};
let method = '';
let isSync = false;
/** Of a call whose operations are started later, by nobody on the stack. */
let known: string | null = null;

/** A call of `object[name]`, or of `object[name + 'Sync']`, begins. */
export function entering(object: object, name: string, sync: boolean): void {
  caller = object;
  method = name;
  isSync = sync;
}

/** Runs `begin` as a part of the call that was made at `site`; null: of the one that this thread is in. */
export function inCallAt<T>(site: string | null, begin: () => T): T {
  const before = known;
  known = site;
  try {
    return begin();
  } finally {
    known = before;
  }
}

/** Where the call that this thread is in was made: "train.ts:57", or "batch at train.ts:57"; empty if nobody knows. */
export function callSite(): string {
  if (known !== null) return known;
  const location = placeOf(callerOf((caller as Record<string, unknown>)[isSync ? `${method}Sync` : method]));
  if (location === '') return '';
  return plainVerbs.has(method) ? location : `${method} at ${location}`;
}

/** The innermost frame of the program that has called `entry`, else the innermost of all; none if that is not running. */
function callerOf(entry: unknown): NodeJS.CallSite | undefined {
  if (typeof entry !== 'function') return undefined;
  const { stackTraceLimit, prepareStackTrace } = Error;
  const holder: { stack?: NodeJS.CallSite[] } = {};
  try {
    Error.stackTraceLimit = maxFrames;
    Error.prepareStackTrace = (_, sites) => sites;
    Error.captureStackTrace(holder, entry as (...args: never) => unknown);
    const sites = (holder.stack ?? []).filter((site) => sourceOf(site) !== null);
    return sites.find((site) => !sourceOf(site)!.isOurs) ?? sites[0];
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

interface Source {
  readonly file: string;
  readonly isOurs: boolean;
}

/** By the name that a frame gives: reading it as a URL takes longer than all else here. */
const sources = new Map<string, Source | null>();

/** The file of a frame; null for those of node itself. */
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

/** Our packages lie side by side, in a scope of node_modules or in the repository. */
const scope = dirname(dirname(codeFolder)) + sep;

/** Whether `file` belongs to one of our packages, but not to the tests of one. */
function isOurs(file: string): boolean {
  if (file.includes(`${sep}@ringwise${sep}`)) return true;
  const [, folder] = file.startsWith(scope) ? file.slice(scope.length).split(sep) : [];
  return folder === 'dist' || folder === 'src';
}

const places = new Map<string, string>();

function placeOf(site: NodeJS.CallSite | undefined): string {
  const [line, column] = [site?.getLineNumber(), site?.getColumnNumber()];
  if (site === undefined || !line) return '';
  const { file } = sourceOf(site)!;
  const key = `${file}:${line}:${column}`;
  let location = places.get(key);
  if (location === undefined) {
    location = inSource({ file, line, column: column ?? 1 }).slice(-maxLength);
    places.set(key, location);
  }
  return location;
}

interface Location {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Of a file that was compiled on the way here, the line in what it was compiled from. */
function inSource({ file, line, column }: Location): string {
  const entry = findSourceMap(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !('originalSource' in entry)) return `${shortened(file)}:${line}`;
  return `${shortened(pathOf(entry.originalSource))}:${entry.originalLine + 1}`;
}

/** As a shell in the working directory would name it; a file elsewhere by its name alone. */
function shortened(file: string): string {
  const path = relative(process.cwd(), file);
  return isAbsolute(path) || path.startsWith('..') ? basename(file) : path;
}
