// Frames of control connections, cut and damaged in transit.
import { expect, it } from 'vitest';
import { encode, type Frame, FrameReader } from '../../../../src/backends/tcp/frames.ts';

const failure = { code: 'ERR_COLL_ABORTED', verb: 'abort', seq: null, peers: [1], what: 'enough' } as const;
const frames: readonly Frame[] = [
  { kind: 'post', seq: 7, factor: '-0', signature: 'barrier', counts: null, bytes: new Uint8Array(0) },
  {
    kind: 'post',
    seq: 8,
    factor: '1',
    signature: 'π × 3',
    counts: [[1], [2]],
    bytes: Uint8Array.of(1, 2, 3),
  },
  {
    ...{ kind: 'offer', id: 1, tag: 5, shape: '4 × int8', signature: 'send 4 × int8 to rank 1' },
    ...{ isInline: true, bytes: new Uint8Array(20_000).fill(7) },
  },
  { kind: 'take', id: 3 },
  { kind: 'report', failure },
  { kind: 'cause', failure },
  { kind: 'question' },
  { kind: 'waiting', waitsFor: [0, 2] },
  { kind: 'goodbye' },
  { kind: 'goodbye heard' },
] as Frame[];
const stream = Buffer.concat(frames.map(encode));

it.each([1, 2, 7, 4096, stream.length])('arrive whole if they come in pieces of %i bytes', (length) => {
  const reader = new FrameReader();
  const read: Frame[] = [];
  for (let at = 0; at < stream.length; at += length) {
    // The reader may keep what it gets, so each piece has memory of its own.
    for (const frame of reader.read(Buffer.from(stream.subarray(at, at + length)))) read.push(frame);
  }
  expect(read.map((frame) => ({ ...frame, bytes: undefined }))).toEqual(
    frames.map((frame) => ({ ...frame, bytes: undefined })),
  );
  for (const [index, frame] of frames.entries()) {
    if ('bytes' in frame) expect(Buffer.compare(frame.bytes, (read[index] as typeof frame).bytes)).toBe(0);
  }
});

it.each([
  ['a frame that is too long', Uint8Array.of(0, 0, 0, 255, 0)],
  ['a frame that is too short', Uint8Array.of(1, 0, 0, 0, 0)],
  ['an unknown kind', Uint8Array.of(7, 0, 0, 0, 99, 2, 0, 0, 0, 123, 125)],
  ['a text beyond its frame', Uint8Array.of(7, 0, 0, 0, 0, 200, 0, 0, 0, 123, 125)],
  ['a text that is no JSON', Uint8Array.of(7, 0, 0, 0, 0, 2, 0, 0, 0, 123, 123)],
])('are refused: %s', (_, bytes) => {
  expect(() => [...new FrameReader().read(Buffer.from(bytes))]).toThrow();
});
