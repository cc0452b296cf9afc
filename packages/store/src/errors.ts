// Makes all errors of this package. A message has the form "<verb>: <what happened>; <expected and got> (<where>).
// <next step>".

const mark = Symbol.for('ringwise.StoreError');

/** The codes of a StoreError. The README lists cause and next step of each. */
export type StoreErrorCode =
  | 'ERR_STORE_ARGUMENT'
  | 'ERR_STORE_AUTH'
  | 'ERR_STORE_BUSY'
  | 'ERR_STORE_CLOSED'
  | 'ERR_STORE_CONNECT'
  | 'ERR_STORE_FILE'
  | 'ERR_STORE_LISTEN'
  | 'ERR_STORE_LOST'
  | 'ERR_STORE_PROTOCOL'
  | 'ERR_STORE_STALE'
  | 'ERR_STORE_TIMEOUT'
  | 'ERR_STORE_VALUE';

/** The error type of all calls of this package. Branch on `code`; the text is for people. */
export class StoreError extends Error {
  /** Name of the class. */
  override readonly name = 'StoreError';
  /** Stable code, which programs may compare. */
  readonly code: StoreErrorCode;
  /** For ERR_STORE_TIMEOUT: the keys that were missing, or all keys of the wait if the server did not answer. */
  declare readonly keys?: readonly string[];

  constructor(
    code: StoreErrorCode,
    message: string,
    details: { keys?: readonly string[]; cause?: unknown } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.code = code;
    if (details.keys) this.keys = details.keys;
  }

  get [mark](): true {
    return true;
  }

  /** Returns whether `value` is a StoreError, also of another copy of this package. */
  static isInstance(value: unknown): value is StoreError {
    return typeof value === 'object' && value !== null && mark in value;
  }
}

export const badArgument = (verb: string, expected: string, got: unknown) =>
  new StoreError('ERR_STORE_ARGUMENT', `${verb}: expected ${expected}, got ${shown(got)}.`);

/** Error for `new` where a function that waits makes the store. */
export const notOpened = (name: string, call: string) =>
  new StoreError(
    'ERR_STORE_ARGUMENT',
    `new ${name}(): expected await ${name}.${call}, which reaches the store first.`,
  );

/** `problem` is the text that unknownOption() returned. */
export const badOptions = (verb: string, problem: string) =>
  new StoreError('ERR_STORE_ARGUMENT', `${verb}: ${problem}.`);

export const tooLarge = (verb: string, what: string, limit: number, bytes: number) =>
  new StoreError(
    'ERR_STORE_ARGUMENT',
    `${verb}: ${what} has ${bytes} bytes; expected at most ${limit}. ` +
      'A store carries addresses and counters; send data with a collective.',
  );

/** Returns the caller's name of a key of the wire, which has a leading slash, and bytes in place of characters. */
const nameOf = (key: string): string => Buffer.from(key, 'latin1').toString().replace(/^\//, '');

export const notANumber = (key: string) =>
  new StoreError(
    'ERR_STORE_VALUE',
    `add: the value under ${shown(nameOf(key))} is no 64-bit decimal number. Use add() only on keys written by add().`,
  );

export const outOfRange = (verb: string, value: bigint) =>
  new StoreError(
    'ERR_STORE_VALUE',
    `${verb}: the counter is ${value}, which a JavaScript number cannot hold exactly; expected a safe integer.`,
  );

export const missingKeys = (
  verb: string,
  where: string,
  timeoutMs: number,
  missing: readonly string[],
  wanted: number,
) =>
  new StoreError(
    'ERR_STORE_TIMEOUT',
    `${verb}: waited ${timeoutMs} ms; missing ${missing.length} of ${wanted} keys: ${listed(missing)} (${where}). ` +
      'The rank that sets a missing key may be stuck, dead or not started.',
    { keys: missing },
  );

export const unanswered = (
  verb: string,
  where: string,
  timeoutMs: number,
  keys: readonly string[] = [],
  cause?: StoreError,
) =>
  new StoreError(
    'ERR_STORE_TIMEOUT',
    `${verb}: the server did not answer within ${timeoutMs} ms (${where})` +
      `${keys.length > 0 ? `; keys: ${listed(keys)}` : ''}. Its process may be stopped or the network cut.`,
    { keys, ...(cause && { cause }) },
  );

export const closed = (where: string) =>
  new StoreError(
    'ERR_STORE_CLOSED',
    `store: this client was closed (${where}). Calls must end before close().`,
  );

/** `cause` is the socket's error, or a text. */
export const lost = (where: string, cause: unknown) =>
  new StoreError(
    'ERR_STORE_LOST',
    `store: lost the connection to the server (${where}: ${reason(cause)}). ` +
      'The process that hosts the store has probably ended; look at its output first.',
    { cause },
  );

/** Calls that a server may have to refuse, and why. The protocol has no other answer than to close the connection. */
const refusals: Readonly<Record<string, string>> = {
  add: 'adds to a value that is no 64-bit decimal number',
  append: 'makes a value larger than the server allows',
};

/** `verb` is the call that the server had to answer next. */
export const closedByServer = (where: string, verb: string | undefined): StoreError => {
  const refusal = verb === undefined ? undefined : refusals[verb];
  if (refusal === undefined) return lost(where, 'closed by the server');
  return new StoreError(
    'ERR_STORE_LOST',
    `store: the server closed the connection during ${verb}() (${where}). A server does so if the call ${refusal}. ` +
      'If it does not, the process that hosts the store has probably ended; look at its output.',
  );
};

export const directoryGone = (directory: string, cause: unknown) =>
  new StoreError(
    'ERR_STORE_LOST',
    `store: the directory was removed while the store was in use (file ${directory}). Remove it only after the run.`,
    { cause },
  );

export const notConnected = (where: string, timeoutMs: number, attempts: number, cause: unknown) =>
  new StoreError(
    'ERR_STORE_CONNECT',
    `connect: no store answered within ${timeoutMs} ms; ${attempts} attempts, the last: ${reason(cause)} (${where}). ` +
      'Check that the process that hosts the store runs, and that MASTER_ADDR and MASTER_PORT name it.',
    { cause },
  );

/** `cause` is the socket's error. */
export const noLoopback = (where: string, cause: unknown) =>
  new StoreError(
    'ERR_STORE_CONNECT',
    `connect: this host cannot reach its own loopback address; expected an interface that is up and has it ` +
      `(${where}: ${reason(cause)}). On Linux run: ip link set lo up`,
    { cause },
  );

export const serverBusy = (where: string) =>
  new StoreError(
    'ERR_STORE_BUSY',
    `connect: the store has too many unauthenticated connections (${where}). ` +
      'Look on its host for what connects to that port without the secret, such as a port scanner or a health check.',
  );

export const stillBusy = (where: string, timeoutMs: number, attempts: number, cause: StoreError) =>
  new StoreError(
    'ERR_STORE_BUSY',
    `connect: the store turned this client away for ${timeoutMs} ms, in ${attempts} attempts: it has too many ` +
      `unauthenticated connections (${where}). Look on its host for what connects to that port without the secret, such ` +
      'as a port scanner or a health check.',
    { cause },
  );

export const notAStore = (where: string, cause: unknown) =>
  new StoreError(
    'ERR_STORE_PROTOCOL',
    `connect: the server ended the connection instead of answering a ping (${where}: ${reason(cause)}). ` +
      'Expected a ringwise store or the TCPStore of torch 2.4 or newer.',
    { cause },
  );

export const malformed = (what: string, got: unknown) =>
  new StoreError(
    'ERR_STORE_PROTOCOL',
    `store: malformed ${what}, got ${shown(got)}. The peer speaks another protocol.`,
  );

export const secretNeeded = (where: string) =>
  new StoreError(
    'ERR_STORE_AUTH',
    `connect: the store asks for a secret and this client has none (${where}). ` +
      'Start the rank with the launcher, or give the job its RINGWISE_SECRET.',
  );

export const secretDiffers = (where: string) =>
  new StoreError(
    'ERR_STORE_AUTH',
    `connect: the store and this client have different secrets (${where}). ` +
      'Give all processes of the job the same RINGWISE_SECRET; the address may also belong to another job.',
  );

export const secretUnknown = (where: string, cause?: unknown) =>
  new StoreError(
    'ERR_STORE_AUTH',
    `connect: the server cannot prove that it knows the secret (${where}). ` +
      'It was started without one, or is no ringwise store. Start it with the same secret.',
    { cause },
  );

export const openToAll = (host: string) =>
  new StoreError(
    'ERR_STORE_LISTEN',
    `serveStore: refuses to listen on ${host} without a secret, because any program that reaches the port could control the job. ` +
      'Pass a secret, or listen on 127.0.0.1.',
  );

/** A warning. It must not contain the secret. */
export const shortSecret = (host: string, length: number) =>
  `serveStore: the secret of the store on ${host} has ${length} characters, so programs that reach the port could guess it; ` +
  'expected at least 16 random ones. For example: openssl rand -hex 32';

export const cannotListen = (host: string, port: number, cause: NodeJS.ErrnoException) =>
  new StoreError(
    'ERR_STORE_LISTEN',
    cause.code === 'EADDRINUSE'
      ? `serveStore: port ${port} is in use on ${host}. Pass port 0 to get a free one and read it from the result.`
      : `serveStore: cannot listen on ${host}:${port} (${reason(cause)}).`,
    { cause },
  );

/** Warning about a bug of the server: it dropped one client and continues to serve the others. */
export const serverBug = (cause: unknown) =>
  new Error('bug: the store server failed on a request and dropped the client. Please report this.', {
    cause,
  });

export const workerFailed = (cause: unknown) =>
  new StoreError(
    'ERR_STORE_LISTEN',
    `serveStoreInWorker: the worker ended before it listened (${reason(cause)}).`,
    { cause },
  );

interface StoreHeader {
  readonly format: string;
  readonly runId: string;
  readonly createdAt: string;
}

export const staleDirectory = (directory: string, expected: StoreHeader, found: Partial<StoreHeader>) => {
  const isOfStore = found.format === expected.format;
  const problem = isOfStore
    ? 'the directory belongs to another run'
    : 'the directory has another header.json';
  const sides = isOfStore
    ? `expected run ${shown(expected.runId)}, got ${shown(found.runId)} created ${found.createdAt}`
    : `expected the format ${shown(expected.format)}, got ${shown(found.format)}`;
  return new StoreError(
    'ERR_STORE_STALE',
    `open: ${problem}; ${sides} (file ${directory}). Remove the directory or choose another.`,
  );
};

export const fileSystemSilent = (
  verb: string,
  directory: string,
  timeoutMs: number,
  keys: readonly string[] = [],
) =>
  new StoreError(
    'ERR_STORE_TIMEOUT',
    `${verb}: the file system did not answer within ${timeoutMs} ms (file ${directory})` +
      `${keys.length > 0 ? `; keys: ${listed(keys)}` : ''}. Its server may be down or the network cut.`,
    { keys },
  );

export const fileFailed = (directory: string, cause: unknown) =>
  new StoreError(
    'ERR_STORE_FILE',
    `store: cannot read or write the directory (file ${directory}: ${reason(cause)}). ` +
      'FileStore needs a writable file system with hard links.',
    { cause },
  );

function reason(cause: unknown): string {
  if (cause instanceof Error)
    return 'code' in cause && !cause.message.includes(String(cause.code))
      ? `${cause.code} ${cause.message}`
      : cause.message;
  return String(cause);
}

function shown(value: unknown): string {
  if (typeof value === 'string')
    return value.length > 80 ? `${JSON.stringify(value.slice(0, 80))}…` : JSON.stringify(value);
  if (typeof value === 'object' && value !== null) return value.constructor?.name ?? 'object';
  return String(value);
}

function listed(keys: readonly string[]): string {
  const named = keys
    .slice(0, 8)
    .map((key) => shown(key))
    .join(', ');
  return keys.length > 8 ? `${named} and ${keys.length - 8} more` : named;
}
