// Where in the user's program a call on a group was made, as "train.ts:57": for errors and the flight recorder. Taking
// a stack costs microseconds, so it is taken only when somebody asks, inside the call; see native/coll/host_group.h
// and flight-recorder.ts for when that is.
import { findSourceMap } from 'node:module';
import { basename, dirname, isAbsolute, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { allVerbs } from './all-verbs.ts';

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
  const frames = framesAbove((caller as Record<string, unknown>)[isSync ? `${method}Sync` : method]);
  const place = placeOf(frames.find(({ file }) => !isOurs(file)) ?? frames[0]);
  if (place === '') return '';
  return plainVerbs.has(method) ? place : `${method} at ${place}`;
}

interface Frame {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The frames of the program that has called `entry`; none if that is not running. */
function framesAbove(entry: unknown): Frame[] {
  if (typeof entry !== 'function') return [];
  const { stackTraceLimit, prepareStackTrace } = Error;
  const holder: { stack?: NodeJS.CallSite[] } = {};
  try {
    Error.stackTraceLimit = maxFrames;
    Error.prepareStackTrace = (_, sites) => sites;
    Error.captureStackTrace(holder, entry as (...args: never) => unknown);
    return (holder.stack ?? []).flatMap((site) => {
      const [name, line, column] = [site.getFileName(), site.getLineNumber(), site.getColumnNumber()];
      if (!name || line === null || name.startsWith('node:')) return [];
      return [{ file: pathOf(name), line, column: column ?? 1 }];
    });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

function pathOf(name: string): string {
  return name.startsWith('file:') ? fileURLToPath(name) : name;
}

const here = dirname(pathOf(import.meta.url));
/** Our packages lie side by side, in a scope of node_modules or in the repository. */
const scope = dirname(dirname(here)) + sep;

/** Whether `file` belongs to one of our packages, but not to the tests of one. */
function isOurs(file: string): boolean {
  if (file.includes(`${sep}@ringwise${sep}`)) return true;
  const [, folder] = file.startsWith(scope) ? file.slice(scope.length).split(sep) : [];
  return folder === 'dist' || folder === 'src';
}

const places = new Map<string, string>();

function placeOf(frame: Frame | undefined): string {
  if (frame === undefined) return '';
  const { file, line, column } = frame;
  const key = `${file}:${line}:${column}`;
  let place = places.get(key);
  if (place === undefined) {
    place = inSource(frame).slice(-maxLength);
    places.set(key, place);
  }
  return place;
}

/** Of a file that was compiled on the way here, the line in what it was compiled from. */
function inSource({ file, line, column }: Frame): string {
  const entry = findSourceMap(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !('originalSource' in entry)) return `${shortened(file)}:${line}`;
  return `${shortened(pathOf(entry.originalSource))}:${entry.originalLine + 1}`;
}

/** As a shell in the working directory would name it; a file elsewhere by its name alone. */
function shortened(file: string): string {
  const path = relative(process.cwd(), file);
  return isAbsolute(path) || path.startsWith('..') ? basename(file) : path;
}
