// Writes TensorBoard's event files. Each record has a length, its checksum, data, and the data's checksum, in
// little endian; the data is a protobuf message, of which scalars need five fields. Each rank is a run of its
// own, so that its curves can be switched on and off.

import { openSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '@ringwise/store';
import { AppendFile } from './append-file.ts';
import { maskedCrc32c } from './crc32c.ts';
import type { Report, Sink } from './sink.ts';

/** Returns a sink that writes DIR/rank<R>/events.out.tfevents.*. Throws if the folder cannot be made. */
export function tensorboardSink(dir: string): Sink {
  const files = new Map<number, AppendFile>();
  makeFolder(dir);
  const fileOf = (rank: number, timeMs: number) => {
    const known = files.get(rank);
    if (known) return known;
    const file = new AppendFile(openRun(join(dir, `rank${rank}`), timeMs));
    file.add(record(event(timeMs, concat([0x1a], delimited(Buffer.from('brain.Event:2'))))));
    files.set(rank, file);
    return file;
  };
  return {
    add: ({ rank, timeMs, step, values }: Report) => {
      const file = fileOf(rank, timeMs);
      for (const [tag, value] of Object.entries(values)) {
        file.add(record(event(timeMs, concat([0x10], varint(step), [0x2a], delimited(scalar(tag, value))))));
      }
    },
    flush: () => {
      for (const file of files.values()) file.flush();
    },
    close: () => {
      for (const file of files.values()) file.close();
    },
  };
}

function openRun(folder: string, timeMs: number): number {
  makeFolder(folder);
  const name = `events.out.tfevents.${Math.floor(timeMs / 1000)}.${hostname()}.${process.pid}`;
  return openSync(join(folder, name), 'a');
}

/**
 * Encodes an Event: wall_time (1, double, seconds), then these fields: step (2), file_version (3), summary
 * (5).
 */
function event(timeMs: number, fields: Uint8Array): Uint8Array {
  const time = Buffer.alloc(9);
  time[0] = 0x09;
  time.writeDoubleLE(timeMs / 1000, 1);
  return concat(time, fields);
}

/** Encodes a Summary with one value: tag (1), simple_value (2, float). */
function scalar(tag: string, value: number): Uint8Array {
  const number = Buffer.alloc(5);
  number[0] = 0x15;
  number.writeFloatLE(value, 1);
  return concat([0x0a], delimited(concat([0x0a], delimited(Buffer.from(tag)), number)));
}

function record(data: Uint8Array): Uint8Array {
  const framed = Buffer.alloc(data.length + 16);
  framed.writeBigUInt64LE(BigInt(data.length));
  framed.writeUInt32LE(maskedCrc32c(framed.subarray(0, 8)), 8);
  framed.set(data, 12);
  framed.writeUInt32LE(maskedCrc32c(data), 12 + data.length);
  return framed;
}

function delimited(bytes: Uint8Array): Uint8Array {
  return concat(varint(bytes.length), bytes);
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

function concat(...parts: ArrayLike<number>[]): Uint8Array {
  return Buffer.concat(parts.map((part) => Uint8Array.from(part)));
}
