// Makes all errors of the package. Errors that a caller's data set, sampler or collate throws are passed on unchanged;
// those of a worker thread are the cause of an ERR_DATA_WORKER.

import { inspect } from 'node:util';
import { captureDeeply } from './deep-stack.ts';

/** The codes of a DataError. The README lists cause and next step of each. */
export type DataErrorCode =
  | 'ERR_DATA_ARGUMENT'
  | 'ERR_DATA_INDEX'
  | 'ERR_DATA_BUNDLED'
  | 'ERR_DATA_COLLATE'
  | 'ERR_DATA_LENGTH'
  | 'ERR_DATA_ASYNC'
  | 'ERR_DATA_STATE'
  | 'ERR_DATA_WORKER'
  | 'ERR_DATA_TIMEOUT'
  | 'ERR_DATA_MODULE'
  | 'ERR_DATA_IDX'
  | 'ERR_DATA_FILE'
  | 'ERR_DATA_NOT_FOUND'
  | 'ERR_DATA_PEER';

const brand = Symbol.for('ringwise.DataError');

/** The error type of this package. `code` is stable; the message is for people. */
export class DataError extends Error {
  /** Stable code, which programs may compare. */
  readonly code: DataErrorCode;

  constructor(code: DataErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'DataError';
    this.code = code;
    captureDeeply(this, DataError);
  }

  get [brand](): true {
    return true;
  }

  /** Returns whether `value` is a DataError, also of another copy of this package. */
  static isInstance(value: unknown): value is DataError {
    return typeof value === 'object' && value !== null && brand in value;
  }
}

function shapeText(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}

/**
 * Formats a text from a file for a message: shortened, and without control characters that a terminal would
 * interpret.
 */
function excerpt(text: string): string {
  const short = text.length > 300 ? `${text.slice(0, 300)}…` : text;
  return short.replace(/\p{Cc}/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Formats a user's value for a message. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, 60)}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}`;
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

export function outOfRange(what: string, expected: string, got: unknown, next?: string): DataError {
  const end = next === undefined ? '' : ` ${next}`;
  return new DataError('ERR_DATA_ARGUMENT', `${what}: expected ${expected}, got ${shown(got)}.${end}`);
}

/** Error for a group in place of the options that say which share of a data set this rank takes. */
export function groupAsOptions(what: string): DataError {
  const expected = '{ replicas: group.size, rank: group.rank }';
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `${what}: expected ${expected} as options, got the group itself.`,
  );
}

/** Error for `new` where a function that waits opens the file. */
export function notOpened(name: string): DataError {
  const next = 'It loads a package first, so it is asynchronous.';
  return new DataError('ERR_DATA_ARGUMENT', `new ${name}(): expected await ${name}.open(…). ${next}`);
}

/** `fault` is the text that unknownOption() returned. */
export function unknownOptions(what: string, fault: string, next?: string): DataError {
  return new DataError('ERR_DATA_ARGUMENT', `${what}: ${fault}.${next === undefined ? '' : ` ${next}`}`);
}

export function noColumn(reader: string, names: readonly string[], got: unknown): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `${reader}: a column: expected ${excerpt(names.join(', '))}, got ${excerpt(String(got))}.`,
  );
}

/** Error for a list without any of the required items. */
export function nothingThere(what: string, expected: string): DataError {
  return new DataError('ERR_DATA_ARGUMENT', `${what}: expected ${expected}, got none.`);
}

export function emptyDataset(sampler: string): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `${sampler}: nothing to sample from; expected a length of at least 1, got 0. Is the data set empty?`,
  );
}

export function excludes(option: string, others: readonly string[], why: string): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `DataLoader: ${option} was given together with ${others.join(' and ')}; expected one or the other. ${why}`,
  );
}

export function fieldSize(
  field: string,
  length: number,
  shape: readonly number[],
  samples: number,
): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `ArrayDataset: field "${field}" has ${length} elements with ${shapeText(shape)} per sample; ` +
      `expected ${samples} samples as in the first field. Every field needs one entry per sample, and the shape of one sample.`,
  );
}

export function fieldShape(field: string, length: number, shape: readonly number[]): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `ArrayDataset: field "${field}" has ${length} elements; expected a multiple of the product of its shape ` +
      `per sample, got ${shapeText(shape)}. The shape leaves out the number of samples.`,
  );
}

export function noFields(): DataError {
  return new DataError('ERR_DATA_ARGUMENT', 'ArrayDataset: expected at least one field, got none.');
}

export function badIndex(dataset: string, index: unknown, length: number): DataError {
  return new DataError(
    'ERR_DATA_INDEX',
    `${dataset}: index ${inspect(index)} is outside the data set; expected an integer from 0 to ${length - 1}. ` +
      'A sampler made for another data set gives such indices.',
  );
}

function nextOfValue(got: string): string {
  if (got === 'a Tensor')
    return 'Return { data: await x.data(), shape: x.shape } instead, and make tensors of the batch.';
  if (got === 'undefined') return 'Does get() return the sample?';
  return 'Pass your own collate to the DataLoader.';
}

export function notCollatable(path: string, got: string): DataError {
  return new DataError(
    'ERR_DATA_COLLATE',
    `collate: ${path} cannot become part of a batch; expected a number, bigint, boolean, string, typed array, ` +
      `{ data, shape }, array or plain object, got ${got}. ${nextOfValue(got)}`,
  );
}

export function arrayWithMembers(path: string, member: string): DataError {
  return new DataError(
    'ERR_DATA_COLLATE',
    `collate: ${path} has data and shape, so it is an array, but also a member '${member}', which an array cannot have. ` +
      `Put the array into a member of its own: { x: { data, shape }, ${member} }.`,
  );
}

export function unequalSamples(path: string, first: string, position: number, other: string): DataError {
  return new DataError(
    'ERR_DATA_COLLATE',
    `collate: ${path} differs between samples 0 and ${position} of the batch; expected ${first}, got ${other}. ` +
      'Make all samples equal in size, or pass your own collate that pads them.',
  );
}

export function emptyBatch(): DataError {
  return new DataError('ERR_DATA_COLLATE', 'collate: expected at least one sample, got none.');
}

/** Error for tensors in place of the fields of an ArrayDataset. `name` is null if a tensor is all that was given. */
export function tensorAsField(name: string | null): DataError {
  const field = name ?? 'x';
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `ArrayDataset: ${name === null ? 'fields' : `field "${name}"`}: expected ${name === null ? 'one object of { data, shape } by name' : '{ data, shape } with a typed array'}, ` +
      `got a tensor. Pass { ${field}: { data: ${field}.dataSync(), shape: ${field}.shape.slice(1) } }; shape is that of one sample.`,
  );
}

export function notDataset(got: unknown): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    'DataLoader: the first argument is no data set; expected an array, an object with length and get(index), or an ' +
      `iterable, got ${withMembers(got)}.`,
  );
}

/** Formats an object with the names of its first members, methods of its class included. */
function withMembers(value: unknown): string {
  if (typeof value !== 'object' || value === null) return shown(value);
  if (value instanceof Promise) return 'a promise, which needs an await';
  const names = new Set(Object.keys(value));
  for (
    let at: unknown = Object.getPrototypeOf(value);
    at && at !== Object.prototype;
    at = Object.getPrototypeOf(at)
  )
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  const [first, ...rest] = names;
  if (first === undefined) return 'an object without members';
  return `an object with ${[first, ...rest.slice(0, 4)].join(', ')}${rest.length > 4 ? ', …' : ''}`;
}

/** Error for a batch that is undefined. */
export function noBatch(): DataError {
  return new DataError(
    'ERR_DATA_COLLATE',
    'DataLoader: expected a batch, got undefined from collate or the data set. Does the function return its result?',
  );
}

export function noLength(what: string): DataError {
  return new DataError(
    'ERR_DATA_LENGTH',
    `DataLoader.length: ${what} has no length, so the number of batches is known only after a pass. ` +
      'Count the batches instead.',
  );
}

export function notSynchronous(what: string): DataError {
  return new DataError(
    'ERR_DATA_ASYNC',
    `DataLoader: ${what} is asynchronous, so a plain for…of cannot read it. Use for await…of.`,
  );
}

export function noState(what: string): DataError {
  return new DataError(
    'ERR_DATA_STATE',
    `DataLoader: ${what} does not know its position in an epoch; expected a sampler with state and load, ` +
      'such as SequentialSampler, RandomSampler or DistributedSampler.',
  );
}

export function notAState(sampler: string, got: unknown): DataError {
  return new DataError(
    'ERR_DATA_STATE',
    `${sampler}.load: expected a state, as state() returns one, got ${shown(got)}. Leave the call out if there is none.`,
  );
}

export function badState(sampler: string, what: string, expected: unknown, got: unknown): DataError {
  return new DataError(
    'ERR_DATA_STATE',
    `${sampler}.load: ${what} of the state does not fit; expected ${String(expected)}, got ${String(got)}. ` +
      'A state resumes the same data set with the same kind of sampler; world size and batch size may differ.',
  );
}

function badIdx(file: string, what: string, next: string, cause?: unknown): DataError {
  return new DataError(
    'ERR_DATA_IDX',
    `readIdx: ${what} (${file}). ${next}`,
    cause === undefined ? {} : { cause },
  );
}

export function notIdx(file: string, magic: string): DataError {
  const expected = '0000 and a type code (08, 09, 0b, 0c, 0d or 0e)';
  return badIdx(
    file,
    `not an IDX file; expected it to begin with ${expected}, got ${magic}`,
    'Is it another format?',
  );
}

export function idxDimensions(file: string, most: number, got: number): DataError {
  return badIdx(
    file,
    `too many dimensions; expected at most ${most}, got ${got}`,
    'The header is likely damaged.',
  );
}

export function idxTooLarge(
  file: string,
  maxBytes: number,
  bytes: bigint,
  shape: readonly number[],
): DataError {
  return badIdx(
    file,
    `too large; expected at most ${maxBytes} bytes (maxBytes), got a header for ${bytes}, ${shapeText(shape)}`,
    'Raise maxBytes if you trust the file.',
  );
}

export function idxTruncated(file: string, what: string, expected: number, got: number): DataError {
  return badIdx(file, `truncated; expected ${expected} bytes for ${what}, got ${got}`, 'Get the file again.');
}

export function idxTrailing(file: string, what: string, expected: number, got: string): DataError {
  return badIdx(
    file,
    `trailing bytes; expected ${expected} bytes for ${what}, got ${got}`,
    'Header and data do not belong together.',
  );
}

export function idxGzip(file: string, inflatedBytes: number, cause: unknown): DataError {
  return badIdx(
    file,
    `gzip data is damaged or truncated; expected a complete stream, got ${inflatedBytes} bytes out of it`,
    'Get the file again.',
    cause,
  );
}

export function notWritable(file: string, what: string, expected: string, got: string): DataError {
  return new DataError('ERR_DATA_IDX', `writeIdx: ${what}; expected ${expected}, got ${got} (${file}).`);
}

export function noMnistFile(folder: string, names: readonly string[]): DataError {
  return new DataError(
    'ERR_DATA_NOT_FOUND',
    `loadMnist: found none of ${names.join(', ')} (${folder}). Name the folder that holds the four IDX files.`,
  );
}

export function badMnist(file: string, expected: string, got: string): DataError {
  return new DataError('ERR_DATA_IDX', `loadMnist: expected ${expected}, got ${got} (${file}).`);
}

export function moduleMissing(url: string, cause: unknown): DataError {
  return new DataError(
    'ERR_DATA_MODULE',
    `loadDataset: there is no module ${url}; expected the URL of one. Pass a file beside the calling one as ` +
      "new URL('./my-data.mjs', import.meta.url).",
    { cause },
  );
}

export function argsNotSent(cause: unknown): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    `loadDataset: the arguments cannot be sent to a worker thread: ${(cause as Error).message} Expected values of ` +
      'structured clone, such as plain objects and typed arrays. Make the rest in the module of the data set.',
    { cause },
  );
}

export function badModule(url: string, got: string): DataError {
  return new DataError(
    'ERR_DATA_MODULE',
    `loadDataset: ${url} makes no data set; expected a default export that is a function and returns one, got ${got}.`,
  );
}

export function noTypeScript(url: string, cause?: unknown): DataError {
  return new DataError(
    'ERR_DATA_MODULE',
    `loadDataset: Node ${process.versions.node} cannot run ${url} by itself; expected Node 22.18 or newer for plain .ts, ` +
      'or tsx beside the data set. Run npm install --save-dev tsx.',
    cause === undefined ? {} : { cause },
  );
}

export function isBundled(path: string): DataError {
  return new DataError(
    'ERR_DATA_BUNDLED',
    `DataLoader: there is no file ${path}, which workers start with. This code is probably part of a bundle: mark ` +
      'ringwise and @ringwise/* as external in the bundler, and install them beside the program (docs/install.md).',
  );
}

export function noOrigin(): DataError {
  return new DataError(
    'ERR_DATA_ARGUMENT',
    'DataLoader: numWorkers needs a data set that threads can make too; expected one from loadDataset(), got another. ' +
      'Move it into a module: export default (args) => dataset.',
  );
}

export function workerFailed(id: number, cause: unknown): DataError {
  const error = new DataError(
    'ERR_DATA_WORKER',
    `DataLoader: worker ${id} failed: ${cause instanceof Error ? `${cause.name}: ${cause.message}` : textOf(cause)}`,
    { cause },
  );
  // The stack of the error in the worker thread is the useful one.
  if (cause instanceof Error && cause.stack)
    error.stack = `${error.message}\n  in the worker: ${cause.stack}`;
  return error;
}

/** Formats a value that was thrown and is no error. */
const textOf = (thrown: unknown): string =>
  typeof thrown === 'string' ? thrown : excerpt(inspect(thrown, { depth: 1, breakLength: Infinity }));

export function workerEnded(id: number, exitCode: number): DataError {
  return new DataError(
    'ERR_DATA_WORKER',
    `DataLoader: worker ${id} ended with exit code ${exitCode} before its batch was ready. ` +
      'The loader was closed during a pass, or the data set or a module that it imports called process.exit().',
  );
}

export function workerTimeout(id: number, timeoutMs: number): DataError {
  return new DataError(
    'ERR_DATA_TIMEOUT',
    `DataLoader: no batch from worker ${id} within ${timeoutMs} ms. The data set may hang; raise timeoutMs if it is slow.`,
  );
}

export function closedFile(path: string): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `read: the file was closed (${path}). Keep it open while a loader uses it.`,
  );
}

export function notAFile(path: string): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `open: expected a regular file, got a folder, a pipe or a device (${path}).`,
  );
}

/** `cause` is an error of the file system, such as ENOENT. */
export function fileSystem(verb: string, path: string, cause: unknown): DataError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const next = code === 'ENOENT' ? ' Is the path right?' : '';
  return new DataError('ERR_DATA_FILE', `${verb}: the system refuses it, ${message} (${path}).${next}`, {
    cause,
  });
}

export function longLine(reader: string, where: string, most: number, next: string): DataError {
  return badFile(reader, where, ['a line is too long', `at most ${most} bytes`, 'more'], next);
}

export function notUtf8(reader: string, where: string): DataError {
  const what = ['a line is not UTF-8', 'text in UTF-8', 'other bytes'] as const;
  const next =
    'Convert the file, for example by: iconv -f WINDOWS-1252 -t UTF-8, with the encoding that it has.';
  return badFile(reader, where, what, next);
}

export function fileShrank(path: string, expected: number, got: number): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `read: expected ${expected} bytes, got ${got} (${path}). The file became shorter while it was open.`,
  );
}

export function badTokenBytes(path: string, width: number, got: number): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `TokenFile: expected a multiple of ${width} bytes, got ${got} (${path}). Is the dtype another one?`,
  );
}

export function fewTokens(path: string, block: number, got: number): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `TokenFile: expected at least ${block + 1} tokens for a block of ${block}, got ${got} (${path}). Take a smaller block.`,
  );
}

export function badNpy(path: string, expected: string, got: string): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `NpyFile: expected ${excerpt(expected)}, got ${excerpt(got)} (${path}). Write it with numpy.save, as one C-ordered array of numbers.`,
  );
}

export function badJson(path: string, line: number, cause: unknown): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `JSON lines: line ${line} is no JSON; expected one value per line, got ${excerpt((cause as Error).message)} (${path}:${line}).`,
    { cause },
  );
}

export function noPeer(reader: string, name: string, cause: unknown): DataError {
  const [reason] = (cause instanceof Error ? cause.message : String(cause)).trim().split('\n', 1);
  return new DataError(
    'ERR_DATA_PEER',
    `${reader}: expected the package ${name}, got: ${reason}. Run npm install ${name}.`,
    { cause },
  );
}

/** Error for a file that cannot be read. `where` is the file, with the position in it if known. */
export function badFile(
  reader: string,
  where: string,
  [what, expected, got]: readonly [what: string, expected: string, got: string],
  next: string,
  cause?: unknown,
): DataError {
  return new DataError(
    'ERR_DATA_FILE',
    `${reader}: ${excerpt(what)}; expected ${excerpt(expected)}, got ${excerpt(got)} (${where}). ${next}`,
    cause === undefined ? {} : { cause },
  );
}
