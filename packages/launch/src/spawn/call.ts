// A rank of spawn() is one call of one function. The call is sent to a process or thread, which makes it and
// replies.

import { deserialize, serialize } from 'node:v8';
import type { LastWords } from '../report/words.ts';

export interface Call {
  readonly url: string;
  readonly exportName: string;
  /** Arguments; the rank is the first. */
  readonly args: readonly unknown[];
}

const sender = 'ringwise';

/** The end of a call. `from` tells it from messages that the function itself sends. */
export interface Reply {
  readonly from: typeof sender;
  readonly result: unknown;
}

/** A reply of a process, with the result in the format of v8.serialize(). */
export interface PackedReply {
  readonly from: typeof sender;
  readonly packed: Buffer;
}

/** The error that ends a thread. */
export interface Failed {
  readonly from: typeof sender;
  readonly lastWords: LastWords;
}

export const replyOf = (result: unknown): Reply => ({ from: sender, result });
export const failedBy = (lastWords: LastWords): Failed => ({ from: sender, lastWords });

/**
 * Bytes that one message of a process can have, beside some for the message itself. Node.js sends longer ones, but the
 * process that receives one ends by an error that it cannot catch.
 */
const mostBytes = 2 ** 31 - 4096;

/**
 * Serializes a reply for the channel between processes. Throws if structured clone does not copy the result, or if it
 * takes more than `most` bytes.
 */
export function packReply({ from, result }: Reply, most = mostBytes): PackedReply {
  const packed = serialize(result);
  if (packed.length <= most) return { from, packed };
  throw new RangeError(`it takes ${packed.length} bytes, expected at most ${most}`);
}

export const unpackReply = ({ packed }: PackedReply): Reply => replyOf(deserialize(packed));

/** Returns whether a message is one of these. */
export const isOurs = (message: unknown): message is Reply | PackedReply | Failed =>
  (message as { readonly from?: unknown } | null | undefined)?.from === sender;

// On globalThis, because the program of a rank and the module of spawn() are bundled apart.
const loading = Symbol.for('ringwise.loadingRank');
const shared = globalThis as { [loading]?: boolean };

/** Returns whether this process or thread is a rank of spawn() that still loads the module with its function. */
export const isLoadingRank = (): boolean => shared[loading] === true;

export async function makeCall({ url, exportName, args }: Call): Promise<Reply> {
  shared[loading] = true;
  const module = (await import(url)) as Record<string, unknown>;
  shared[loading] = false;
  // The default export of a CommonJS module is all that it exports: also what Node.js has not detected by name, and the
  // `default` of code that a compiler has made of an ES module.
  const body = [module, module.default as Record<string, unknown> | null | undefined]
    .map((exports) => exports?.[exportName])
    .find((each) => typeof each === 'function');
  if (typeof body === 'function') return replyOf(await body(...args));
  throw new TypeError(
    `spawn: ${url} has no function named '${exportName}'; it exports ${Object.keys(module).join(', ') || 'nothing'}. ` +
      'Export one, or name it with exportName.',
  );
}

/** Calls `send` with the reply. A result that structured clone does not copy fails with a sentence that says so. */
export async function sendReply(reply: Reply, send: (reply: Reply) => Promise<void> | void): Promise<void> {
  try {
    await send(reply);
  } catch (cause) {
    const { message } = cause as Error;
    throw new TypeError(
      `spawn: what the function returned cannot be sent to the caller: ${message.replace(/\.$/, '')}. ${remedyOf(cause)}`,
      { cause },
    );
  }
}

function remedyOf(cause: unknown): string {
  if (cause instanceof RangeError) return 'Return less, and write the rest into a file.';
  if ((cause as NodeJS.ErrnoException).code === 'ERR_IPC_CHANNEL_CLOSED')
    return 'Do not call process.disconnect() in a rank.';
  return 'Return values that structured clone copies, such as plain objects and typed arrays.';
}
