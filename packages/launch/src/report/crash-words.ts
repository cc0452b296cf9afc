// Parses the report of a native crash from the pipe of last words: a line of JSON from native/base/crash_words.cc,
// lines about the last calls of the process's groups, and the native stack. Returns an error that has the name of the
// signal.

import { isDecimal, type LastWords } from './words.ts';

/**
 * Shared symbol under which a rank's process stores the descriptor for crash reports. A native addon that
 * finds it reports crashes there.
 */
export const crashSymbol = Symbol.for('ringwise.crashFd');

const maxLines = 48;

interface Crash {
  readonly crash: string;
  readonly timeNs: string;
  readonly thread: string;
  readonly tid: number;
  readonly address?: string;
  readonly sender?: number;
}

/**
 * Returns the last crash in the text of a rank's pipe; null if there is none, or if its first line was cut
 * off.
 */
export function parseCrash(text: string): LastWords | null {
  const lines = text.split('\n').slice(0, -1);
  const first = lines.findLastIndex((line) => line.startsWith('{"crash":'));
  if (first < 0) return null;
  try {
    const crash = JSON.parse(lines[first]!) as Crash;
    if (typeof crash.crash !== 'string' || !isDecimal(crash.timeNs)) return null;
    const rest = lines.slice(first + 1, first + 1 + maxLines);
    const calls = rest.filter((line) => line.startsWith('last call '));
    const frames = rest.filter((line) => !line.startsWith('last call ')).map(readable);
    const message = [sentence(crash), ...calls].join('\n');
    const stack = frames.map((frame) => `    at ${frame}`).join('\n');
    const fields = { native: true };
    return {
      timeNs: BigInt(crash.timeNs),
      error: { name: crash.crash, message, stack, fields, cause: null },
    };
  } catch {
    return null;
  }
}

function sentence({ thread, tid, address, sender }: Crash): string {
  const what = address ? `a fault at address ${address}` : sender ? `sent by process ${sender}` : 'raised';
  return `${what}, in thread ${thread} (${tid})`;
}

/**
 * Formats a frame: "/usr/bin/node(_ZN4node5AbortEv+0x1f) [0x5581]" becomes "node::Abort+0x1f (node)", and
 * "/usr/bin/node[0x5581]" becomes "0x5581 (node)".
 */
function readable(frame: string): string {
  const [, file, symbol, offset, address] =
    /^(.*?)(?:\((.*?)(\+0x[0-9a-f]+)?\))? ?\[(0x[0-9a-f]+)\]$/.exec(frame) ?? [];
  if (file === undefined) return frame;
  const location = symbol ? `${qualifiedName(symbol)}${offset ?? ''}` : (offset?.slice(1) ?? address);
  return `${location} (${file.slice(file.lastIndexOf('/') + 1)})`;
}

/**
 * Returns the name in a mangled C++ symbol, without template arguments and parameters; returns other symbols
 * unchanged.
 */
function qualifiedName(symbol: string): string {
  let rest = /^_ZN[KVRO]*(.*)/.exec(symbol)?.[1] ?? /^_Z(\d.*)/.exec(symbol)?.[1] ?? '';
  const parts: string[] = [];
  for (;;) {
    const [digits] = /^\d+/.exec(rest) ?? [];
    if (digits === undefined) break;
    parts.push(rest.slice(digits.length, digits.length + Number(digits)));
    rest = rest.slice(digits.length + Number(digits));
  }
  return parts.length > 0 ? parts.join('::') : symbol;
}
