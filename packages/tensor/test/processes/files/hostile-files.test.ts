// Files made by somebody who wants the reader to take memory, to wait, to run code, or to take one thing for another.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadNpy, loadNpz, saveNpy, saveNpz } from '../../../src/files/npy/index.ts';
import {
  loadSafetensors,
  loadShardedSafetensors,
  openSafetensors,
  safetensorsMetadata,
  saveSafetensors,
  saveShardedSafetensors,
} from '../../../src/files/safetensors/index.ts';
import { memory, type Tensor, tensor } from '../../../src/index.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-hostile-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);

function write(name: string, bytes: Uint8Array | string): string {
  writeFileSync(at(name), bytes);
  return at(name);
}

/** The sentence of a refusal, for which no tensor and less than 16 MiB were taken. */
async function refusal(load: () => Promise<unknown>, code: string): Promise<string> {
  const { allocations, tensors } = memory();
  const { arrayBuffers } = process.memoryUsage();
  const error = await load().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'TensorError', code });
  expect(memory().allocations).toBe(allocations);
  expect(memory().tensors).toBeLessThanOrEqual(tensors); // the collector may take those of tests before
  expect(process.memoryUsage().arrayBuffers - arrayBuffers).toBeLessThan(2 ** 24);
  return (error as Error).message;
}

// Zip archives, field by field.

interface Part {
  readonly name: string;
  readonly content: Buffer;
  readonly packed?: Buffer;
  readonly method?: number;
  readonly flags?: number;
  readonly crc?: number;
  /** Where they differ from what the member is. */
  readonly bytes?: number;
  readonly packedBytes?: number;
  readonly offset?: number;
  readonly localName?: string;
  /** Of the directory. */
  readonly extra?: Buffer;
}

interface End {
  readonly count?: number;
  readonly bytes?: number;
  readonly start?: number;
  readonly comment?: Buffer;
  /** Between directory and end. */
  readonly between?: (start: number, bytes: number) => Buffer;
}

function fieldsOf(part: Part, name: string, extraBytes: number): Buffer {
  const { content, packed = content, method = 0, flags = 0 } = part;
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(flags, 2);
  fields.writeUInt16LE(method, 4);
  fields.writeUInt32LE(part.crc ?? crc32(content), 10);
  fields.writeUInt32LE(part.packedBytes ?? packed.length, 14);
  fields.writeUInt32LE(part.bytes ?? content.length, 18);
  fields.writeUInt16LE(Buffer.byteLength(name), 22);
  fields.writeUInt16LE(extraBytes, 24);
  return fields;
}

/** `local`: all members, one behind the other. `listed`: what the directory says of them. */
function zip(
  local: readonly Part[],
  { listed = local, ...end }: End & { listed?: readonly Part[] } = {},
): Buffer {
  const locals: Buffer[] = [];
  const offsets: number[] = [];
  let position = 0;
  for (const part of local) {
    const name = part.localName ?? part.name;
    // biome-ignore format: one thing
    const pieces = [Buffer.from('PK\x03\x04', 'latin1'), fieldsOf(part, name, 0), Buffer.from(name), part.packed ?? part.content];
    offsets.push(position);
    for (const { length } of pieces) position += length;
    locals.push(...pieces);
  }
  const directory = listed.flatMap((part, i) => {
    const { extra = Buffer.alloc(0) } = part;
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(part.offset ?? offsets[i] ?? 0, 10);
    const version = Buffer.from('PK\x01\x02\x14\0', 'latin1');
    return [version, fieldsOf(part, part.name, extra.length), rest, Buffer.from(part.name), extra];
  });
  const bytes = directory.reduce((sum, { length }) => sum + length, 0);
  const { comment = Buffer.alloc(0) } = end;
  const tail = Buffer.alloc(22);
  tail.write('PK\x05\x06', 'latin1');
  tail.writeUInt16LE(end.count ?? listed.length, 8);
  tail.writeUInt16LE(end.count ?? listed.length, 10);
  tail.writeUInt32LE(end.bytes ?? bytes, 12);
  tail.writeUInt32LE(end.start ?? position, 16);
  tail.writeUInt16LE(comment.length, 20);
  const between = end.between?.(position, bytes) ?? Buffer.alloc(0);
  return Buffer.concat([...locals, ...directory, between, tail, comment]);
}

/** The records of an archive that is larger than 4 GiB. */
function wideEnd(count: number, bytes: number, start: number, at = start + bytes): Buffer {
  const record = Buffer.alloc(56);
  record.write('PK\x06\x06', 'latin1');
  record.writeBigUInt64LE(44n, 4);
  record.writeBigUInt64LE(BigInt(count), 24);
  record.writeBigUInt64LE(BigInt(count), 32);
  record.writeBigUInt64LE(BigInt(bytes), 40);
  record.writeBigUInt64LE(BigInt(start), 48);
  const locator = Buffer.alloc(20);
  locator.write('PK\x06\x07', 'latin1');
  locator.writeBigUInt64LE(BigInt(at), 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([record, locator]);
}

function wideExtra(...sizes: readonly number[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * sizes.length);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(8 * sizes.length, 2);
  for (const [i, size] of sizes.entries()) extra.writeBigUInt64LE(BigInt(size), 4 + 8 * i);
  return extra;
}

function npy(shape: string, elements: Uint8Array, descr = "'|u1'"): Buffer {
  return npyOf(`{'descr': ${descr}, 'fortran_order': False, 'shape': ${shape}, }\n`, elements);
}

function npyOf(text: string, elements: Uint8Array): Buffer {
  const start = Buffer.from('\x93NUMPY\x02\0\0\0\0\0', 'latin1');
  start.writeUInt32LE(text.length, 8);
  return Buffer.concat([start, Buffer.from(text), elements]);
}

const small = npy('(2,)', Uint8Array.of(1, 2));
const deflated = (name: string, content: Buffer): Part => ({
  ...{ name, content, packed: deflateRawSync(content), method: 8 },
});

describe('npz', () => {
  const refused = (bytes: Buffer, options?: { maxBytes?: number }): Promise<string> =>
    refusal(() => loadNpz(write('a.npz', bytes), options), 'ERR_TENSOR_NPY');
  const load = async (bytes: Buffer): Promise<Record<string, unknown>> => {
    const arrays = await loadNpz(write('a.npz', bytes));
    return Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, array.toArray()]));
  };

  test('members whose bytes are another member with its header are refused', async () => {
    // As in Fifield's bomb: the first member is stored, and its bytes are the local header and the bytes of the second.
    const inner = { name: 'b.npy', content: small };
    const quoted = zip([inner]).subarray(0, 30 + 5 + small.length);
    const outer = { name: 'a.npy', content: npy(`(${quoted.length},)`, quoted) };
    const offset = 30 + 5 + outer.content.length - quoted.length;
    const bytes = zip([outer], { listed: [outer, { ...inner, offset }] });
    expect(await refused(bytes)).toContain('"b.npy" overlaps "a.npy"');
    const other = zip([outer], {
      listed: [
        { ...inner, offset },
        { ...outer, offset: 0 },
      ],
    });
    expect(await refused(other)).toContain('"b.npy" overlaps "a.npy"');
  });

  test('a member that lies in the directory, or behind it, is refused', async () => {
    const good = { name: 'a.npy', content: small };
    const { length } = zip([good]);
    const directory = 30 + 5 + small.length;
    const hidden = zip([good], { listed: [good, { ...good, name: 'b.npy', offset: directory }] });
    expect(await refused(hidden)).toMatch(/"b.npy" (reaches into the directory|lies outside)/);
    const behind = zip([good], { listed: [{ ...good, offset: length - 30 }] });
    expect(await refused(behind)).toMatch(/"a.npy" (reaches into the directory|lies outside)/);
  });

  test('a directory that reaches into its end is refused, and so is one with bytes or members too many', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([good], { bytes: 70 }))).toContain('its directory lies outside of the file');
    expect(await refused(zip([good], { start: 0xfffffff0 }))).toContain('its directory lies outside');
    expect(await refused(zip([good, { ...good, name: 'b.npy' }], { count: 1 }))).toContain(
      'its directory has 51 bytes that no member has',
    );
    expect(await refused(zip([good], { count: 2 }))).toContain('its directory is damaged');
  });

  test('a comment is no directory, whatever it says', async () => {
    const good = { name: 'a.npy', content: small };
    const fake = zip([{ name: 'b.npy', content: small }]).subarray(-22);
    expect(await load(zip([good], { comment: Buffer.concat([fake, Buffer.alloc(3)]) }))).toEqual({
      a: [1, 2],
    });
    expect(await refused(Buffer.concat([zip([good]), Buffer.alloc(1)]))).toContain('it is not a zip archive');
  });

  test('a name that is there twice, or that is another one where the member begins, is refused', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([good, good]))).toContain('"a.npy" is there twice');
    expect(await refused(zip([{ ...good, localName: 'b.npy' }]))).toContain('another name where it begins');
    expect(await refused(zip([{ ...good, localName: 'a.npy2' }]))).toContain('another name where it begins');
  });

  test('names cannot write to a terminal', async () => {
    const message = await refused(zip([{ name: '\u001b[2Jx', content: small }]));
    expect(message).toContain('"\\u001b[2Jx" is no array');
  });

  test('encrypted members, and methods other than deflate, are refused', async () => {
    const good = { name: 'a.npy', content: small };
    expect(await refused(zip([{ ...good, flags: 1 }]))).toContain(
      '"a.npy" is encrypted, which is not supported',
    );
    for (const method of [1, 9, 12, 14, 93, 99])
      expect(await refused(zip([{ ...good, method }]))).toContain(
        `is packed by method ${method}; expected 0 or 8`,
      );
  });

  test('a checksum that differs is damage, whether stored or deflated', async () => {
    const { tensors } = memory();
    for (const member of [{ name: 'a.npy', content: small }, deflated('a.npy', small)]) {
      writeFileSync(at('a.npz'), zip([{ ...member, crc: 1 }]));
      await expect(loadNpz(at('a.npz'))).rejects.toThrow('"a.npy" is damaged: its checksum (CRC-32) differs');
    }
    expect(memory().tensors).toBeLessThanOrEqual(tensors);
  });

  test('less bytes than claimed, more than claimed, and more than packed ones can become', async () => {
    // biome-ignore format: one thing
    const less = { ...deflated('a.npy', npy('(2000,)', new Uint8Array(1000))), bytes: 2000 + npy('(2000,)', Buffer.of()).length };
    writeFileSync(at('a.npz'), zip([less]));
    await expect(loadNpz(at('a.npz'))).rejects.toThrow(/it unpacks to \d+ bytes, and claims/);
    const stored = { name: 'a.npy', content: small, bytes: 10_000 };
    expect(await refused(zip([stored]))).toContain(`"a.npy" cannot have 10000 bytes, as ${small.length}`);
    const ratio = { ...deflated('a.npy', small), bytes: 2 ** 31 };
    expect(await refused(zip([ratio]))).toContain('cannot have 2147483648 bytes');
  });

  test('many members that are 5 GiB together are refused before the first is unpacked, unless maxBytes allows', async () => {
    const chunk = deflateRawSync(Buffer.alloc(2 ** 22));
    const huge = 2 ** 22 * 64;
    // 64 times the same: deflate blocks of which the last alone says so cannot be repeated, so claims alone are made.
    const claim = { packed: Buffer.concat(Array.from({ length: 64 }, () => chunk)), method: 8, bytes: huge };
    const members = Array.from({ length: 20 }, (_, i) => ({ name: `${i}.npy`, content: small, ...claim }));
    const bytes = zip(members);
    expect(bytes.length).toBeLessThan(2 ** 23);
    const problem = 'its arrays take 5368709120 bytes, more than maxBytes, 4294967296; raise it if you trust';
    expect(await refused(bytes)).toContain(problem);
    expect(await refused(bytes, { maxBytes: 2 ** 33 })).not.toContain('maxBytes');
  });

  test('types that become wider in memory count as what they become', async () => {
    const bytes = zip([{ name: 'a.npy', content: npy('(1000,)', new Uint8Array(1000), "'|i1'") }]);
    expect(await refused(bytes, { maxBytes: 3999 })).toContain(
      'its arrays take 4000 bytes, more than maxBytes',
    );
    expect(Object.keys(await loadNpz(write('a.npz', bytes), { maxBytes: 4000 }))).toEqual(['a']);
  });

  test('a header of an array that claims other bytes than the member has is refused before memory is taken', async () => {
    for (const shape of ['(3,)', '(1000000000,)', '(9007199254740991, 9007199254740991)', '()'])
      expect(await refused(zip([{ name: 'a.npy', content: npy(shape, Uint8Array.of(1, 2)) }]))).toMatch(
        /"a\.npy": shape .* needs .* bytes, but 2 follow/,
      );
    const long = Buffer.from(small);
    long.writeUInt32LE(90_000, 8);
    expect(await refused(zip([{ name: 'a.npy', content: long }]))).toContain(
      'the header of "a.npy" is truncated',
    );
    expect(await refused(zip([deflated('a.npy', small.subarray(0, 5))]))).toContain(
      '"a.npy": it does not begin',
    );
  });

  test('Zip64 is read where it is claimed, and checked as all is', async () => {
    const content = small;
    const wide = { ...{ name: 'a.npy', content }, bytes: 0xffffffff, packedBytes: 0xffffffff };
    const extra = wideExtra(content.length, content.length);
    const local = [{ name: 'a.npy', content }];
    expect(await load(zip(local, { listed: [{ ...wide, extra }] }))).toEqual({ a: [1, 2] });
    const end = { count: 0xffff, bytes: 0xffffffff, start: 0xffffffff };
    const between = (start: number, bytes: number): Buffer => wideEnd(1, bytes, start);
    expect(await load(zip(local, { ...end, between }))).toEqual({ a: [1, 2] });
    expect(await refused(zip(local, { listed: [wide] }))).toContain('"a.npy" lies outside of the file');
    expect(await refused(zip(local, { listed: [{ ...wide, extra: wideExtra(5) }] }))).toContain(
      'are damaged',
    );
    expect(
      await refused(zip(local, { listed: [{ ...wide, extra: wideExtra(2 ** 50, 2 ** 50) }] })),
    ).toContain('"a.npy" lies outside of the file');
    expect(await refused(zip(local, end))).toContain('its directory');
    const lies: ((start: number, bytes: number) => Buffer)[] = [
      (start, bytes) => wideEnd(1, bytes, 2 ** 50, start + bytes),
      (start) => wideEnd(1, 2 ** 50, start, start + 51),
      (start, bytes) => wideEnd(2 ** 50, bytes, start),
      (start, bytes) => wideEnd(1, bytes, start, 2 ** 50),
      (start, bytes) => wideEnd(1, bytes, start, start),
    ];
    for (const lie of lies)
      expect(await refused(zip(local, { ...end, between: lie }))).toContain('directory');
  });

  test('a file of holes takes no memory', async () => {
    truncateSync(write('hole.npz', ''), 2 ** 40);
    expect(await refusal(() => loadNpz(at('hole.npz')), 'ERR_TENSOR_NPY')).toContain('is not a zip archive');
  });
});

describe('npy', () => {
  const refused = (bytes: Uint8Array): Promise<string> =>
    refusal(() => loadNpy(write('a.npy', bytes)), 'ERR_TENSOR_NPY');

  test('a header that costs time is refused at once', async () => {
    for (const text of [
      `{${' '.repeat(99_000)}x`,
      `{${"'a': 'b' ".repeat(9000)}}`,
      `{'shape': (${'('.repeat(90_000)}}`,
    ])
      expect(await refused(npyOf(text, Buffer.alloc(0)))).toMatch(/the header (is not|cannot be)/);
  }, 2000);

  test('a member of the header that is there twice is refused', async () => {
    const text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'shape': (2,), }";
    expect(await refused(npyOf(text, Buffer.alloc(2)))).toContain('the header has shape twice');
  });

  test('Python objects are refused, by themselves and in records', async () => {
    expect(await refused(npy('(1,)', Buffer.alloc(8), "'|O'"))).toContain(
      'Python objects are pickled programs',
    );
    expect(await refused(npy('(1,)', Buffer.alloc(8), "[('a', '|O')]"))).toContain('cannot be read from');
  });

  test('messages are short, and cannot write to a terminal', async () => {
    const texts = [
      `{'descr': '${'x'.repeat(50_000)}', 'fortran_order': False, 'shape': (2,)}`,
      `{'descr': '|u1', 'fortran_order': '${'x'.repeat(50_000)}', 'shape': (2,)}`,
      `{'descr': '|u1', 'fortran_order': False, 'shape': (${' '.repeat(50_000)}3,)}`,
      `{\u001b[2J${'x'.repeat(50_000)}`,
      `{'\u001b[2J${'x'.repeat(50_000)}}`,
    ];
    for (const text of texts) {
      const message = await refused(npyOf(text, Buffer.alloc(2)));
      expect(message.length).toBeLessThan(500);
      expect(message).not.toContain('\u001b');
    }
  });

  test('shapes of no elements, and of more than memory has', async () => {
    const none = await loadNpy(write('a.npy', npy('(9007199254740991, 0)', Buffer.alloc(0))));
    expect([none.shape, none.count]).toEqual([[9007199254740991, 0], 0]);
    none.dispose();
    const start = npy('(1099511627776,)', Buffer.alloc(0));
    truncateSync(write('a.npy', start), start.length + 2 ** 40);
    expect(await refusal(() => loadNpy(at('a.npy')), 'ERR_TENSOR_NPY')).toContain(
      'no memory for 1099511627776',
    );
  });
});

describe('safetensors', () => {
  function safetensors(text: string, data = 0): string {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
    return write('a.safetensors', Buffer.concat([length, Buffer.from(text), Buffer.alloc(data)]));
  }
  const refused = (text: string, data = 0): Promise<string> =>
    refusal(() => loadSafetensors(safetensors(text, data)), 'ERR_TENSOR_SAFETENSORS');
  const u8 = (begin: number, end: number): string =>
    `{"dtype":"U8","shape":[${end - begin}],"data_offsets":[${begin},${end}]}`;

  test('a name that is there twice is refused, however it is written', async () => {
    expect(await refused(`{"a":${u8(0, 1)},"a":${u8(0, 2)}}`, 2)).toContain('it has "a" twice');
    expect(await refused(`{"a":${u8(0, 1)},"\\u0061":${u8(0, 2)}}`, 2)).toContain('it has "a" twice');
    expect(await refused(`{"x\\"":${u8(0, 1)}, "x\\"" : ${u8(0, 2)}}`, 2)).toContain('twice');
    expect(await refused(`{"__proto__":${u8(0, 1)},"__proto__":${u8(0, 2)}}`, 2)).toContain('twice');
    const twoTypes = '{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}';
    expect(await refused(twoTypes, 1)).toContain('it has "dtype" twice');
    expect(await refused('{"__metadata__":{"k":"1","k":"2"}}')).toContain('it has "k" twice');
    expect(await refused('{"__metadata__":{},"__metadata__":{}}')).toContain('it has "__metadata__" twice');
  });

  test('names that only look alike are no reason to refuse', async () => {
    const text = `{"a\\\\":${u8(0, 1)},"a":${u8(1, 2)},"b\\"a":${u8(2, 3)},"__metadata__":{"a":"\\"a\\":","b":"{"}}`;
    const loaded = await loadSafetensors(safetensors(text, 3));
    expect(Object.keys(loaded)).toEqual(['a\\', 'a', 'b"a']);
    for (const each of Object.values(loaded)) each.dispose();
    expect(await safetensorsMetadata(at('a.safetensors'))).toEqual({ a: '"a":', b: '{' });
  });

  test('metadata that is no text is refused', async () => {
    for (const value of ['1', 'null', '["a"]', '{"a":1}', '{"a":null}', '{"a":{"b":"c"}}', '"a"'])
      expect(await refused(`{"__metadata__":${value}}`)).toContain(
        '__metadata__ is not an object of strings',
      );
  });

  test('brackets without an end are refused before each takes memory', async () => {
    for (const bracket of ['[', '{"a":'])
      expect(await refused(`{"a":${bracket.repeat(500_000)}`)).toContain('it is nested more than 8 deep');
    expect(await refused(`{"a":{"dtype":"U8","shape":[[[[[1]]]]],"data_offsets":[0,1]}}`, 1)).toContain(
      'has shape [[[[[1',
    );
  });

  test('messages are short, and cannot write to a terminal', async () => {
    const long = 'x'.repeat(100_000);
    const texts = [
      `{"${long}":5}`,
      `{"\\u001b[2J":5}`,
      `{"a":{"dtype":"${long}","shape":[],"data_offsets":[0,1]}}`,
      `{"a":{"dtype":"U8","shape":"${long}","data_offsets":[0,1]}}`,
      `{"a":{"dtype":"U8","shape":[1],"data_offsets":"${long}"}}`,
      `{"${long}":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}`,
      `{"${long}":1,"${long}":1}`,
    ];
    for (const text of texts) {
      const message = await refused(text, 1);
      expect(message.length).toBeLessThan(500);
      expect(message).not.toContain('\u001b');
    }
  });

  test('no text at all, and no JSON, are sentences', async () => {
    for (const text of ['', '{', '"', '{"a', '{"a":"', 'null', '5', '"a":{}', '{"\\q":1}', '}]}', '\ufeff{}'])
      expect(await refused(text)).toMatch(/the header is not (JSON|a JSON object)/);
  });

  test('an index that lies is refused', async () => {
    const index = (text: string): Promise<string> =>
      refusal(() => loadShardedSafetensors(write('index.json', text)), 'ERR_TENSOR_SAFETENSORS');
    expect(await index('{"weight_map":{"a":"x","a":"y"}}')).toContain('it has "a" twice');
    expect(await index(`{"a":${'['.repeat(1_000_000)}`)).toContain('nested more than 8 deep');
    for (const file of ['"../x"', '"/etc/passwd"', '".."', '""', '5', '"a/b"'])
      expect(await index(`{"weight_map":{"a":${file}}}`)).toContain('expected a file beside the index');
    expect(await index('{"weight_map":{"a":"."}}')).toContain('expected a regular file, got a folder');
    truncateSync(write('index.json', '{'), 2 ** 33);
    const load = (): Promise<unknown> => loadShardedSafetensors(at('index.json'));
    expect(await refusal(load, 'ERR_TENSOR_SAFETENSORS')).toContain('expected at most 100000000');
  });
});

describe('what is no regular file', () => {
  const readers: Readonly<Record<string, [code: string, load: (path: string) => Promise<unknown>]>> = {
    loadNpy: ['ERR_TENSOR_NPY', loadNpy],
    loadNpz: ['ERR_TENSOR_NPY', loadNpz],
    loadSafetensors: ['ERR_TENSOR_SAFETENSORS', loadSafetensors],
    openSafetensors: ['ERR_TENSOR_SAFETENSORS', openSafetensors],
    safetensorsMetadata: ['ERR_TENSOR_SAFETENSORS', safetensorsMetadata],
    loadShardedSafetensors: ['ERR_TENSOR_SAFETENSORS', loadShardedSafetensors],
  };

  test.each(Object.entries(readers))('is refused by %s, which does not wait', async (_, [code, load]) => {
    execFileSync('mkfifo', [at('pipe')]);
    mkdirSync(at('folder'));
    for (const [path, kind] of [
      [at('pipe'), 'a pipe'],
      [at('folder'), 'a folder'],
      ['/dev/zero', 'a device'],
    ] as const) {
      const message = await refusal(() => load(path), code);
      expect(message).toContain(path);
      expect(message).toContain(`expected a regular file, got ${kind}`);
    }
    expect(await refusal(() => load(at('none')), code)).toContain('ENOENT');
  });
});

describe('arguments of a newcomer', () => {
  const a = tensor([1]);
  const wrong = null as never;
  const calls: Readonly<Record<string, [call: () => Promise<unknown>, message: string]>> = {
    'loadNpy()': [
      () => loadNpy(undefined as never),
      'loadNpy: path: expected a path, as a string, got undefined.',
    ],
    'loadNpy(URL)': [
      () => loadNpy(new URL('file:///a') as never),
      'loadNpy: path: expected a path, as a string',
    ],
    'loadNpy(symbol)': [() => loadNpy(Symbol('a') as never), 'loadNpy: path: expected a path'],
    'loadNpz(5)': [() => loadNpz(5 as never), 'loadNpz: path: expected a path'],
    'loadNpz maxBytes': [
      () => loadNpz('a', { maxBytes: -1 }),
      'loadNpz: maxBytes: expected an integer ≥ 1, got -1.',
    ],
    'saveNpy(tensor)': [() => saveNpy(a as never, wrong), 'saveNpy: path: expected a path'],
    'saveNpy(path)': [() => saveNpy('a', [1] as never), 'saveNpy: tensor: expected a tensor, got [1].'],
    'saveNpz(null)': [
      () => saveNpz('a', wrong),
      'saveNpz: tensors: expected an object of tensors by name, got null',
    ],
    'saveNpz(tensor)': [
      () => saveNpz('a', a as never),
      'saveNpz: tensors: expected an object of tensors by name',
    ],
    'saveNpz(array)': [
      () => saveNpz('a', [a] as never),
      'saveNpz: tensors: expected an object of tensors by name',
    ],
    'saveNpz(Map)': [
      () => saveNpz('a', new Map([['a', a]]) as never),
      'expected an object of tensors by name',
    ],
    'saveNpz({ a: 1 })': [
      () => saveNpz('a', { a: 1 } as never),
      'saveNpz: tensors: expected an object of tensors',
    ],
    'openSafetensors()': [() => openSafetensors(wrong), 'openSafetensors: path: expected a path'],
    'loadSafetensors()': [() => loadSafetensors(wrong), 'loadSafetensors: path: expected a path'],
    'safetensorsMetadata()': [() => safetensorsMetadata(wrong), 'safetensorsMetadata: path: expected a path'],
    'saveSafetensors()': [() => saveSafetensors(wrong, { a }), 'saveSafetensors: path: expected a path'],
    'saveSafetensors(path)': [
      () => saveSafetensors('a', wrong),
      'expected an object of tensors by name, got null',
    ],
    'saveSharded()': [
      () => saveShardedSafetensors(wrong, { a }),
      'saveShardedSafetensors: folder: expected a path',
    ],
    'saveSharded(folder)': [
      () => saveShardedSafetensors('a', wrong),
      'expected an object of tensors by name',
    ],
    'loadSharded()': [
      () => loadShardedSafetensors(wrong),
      'loadShardedSafetensors: indexPath: expected a path',
    ],
    'loadSharded(path, 5)': [
      () => loadShardedSafetensors('a', 5 as never),
      'names: expected a list of names, got 5',
    ],
    'loadSharded(path, text)': [() => loadShardedSafetensors('a', 'abc'), 'names: expected a list of names'],
  };

  test.each(Object.entries(calls))('%s is a sentence', async (_, [call, message]) => {
    const error = await call().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'TensorError', code: 'ERR_TENSOR_ARGUMENT' });
    expect((error as Error).message).toContain(message);
  });

  test('what is asked of an open file is, too, also once it is closed', async () => {
    await saveSafetensors(at('a.safetensors'), { a: tensor([1, 2]) });
    const file = await openSafetensors(at('a.safetensors'));
    const problem = (call: () => Promise<Tensor>): Promise<string> => refusal(call, 'ERR_TENSOR_SAFETENSORS');
    expect(await problem(() => file.read(undefined as never))).toContain('has no tensor "undefined"');
    expect(await problem(() => file.read(Symbol('a') as never))).toContain('has no tensor "Symbol(a)"');
    expect(await problem(() => file.readSlice('a', Symbol('a') as never, 1))).toContain(
      'do not lie in tensor "a"',
    );
    expect(await problem(() => file.readSlice('a', 0.5, 1))).toContain('do not lie in tensor "a"');
    await expect(file.read('a', { device: 5 as never })).rejects.toMatchObject({ name: 'TensorError' });
    await file.close();
    const closed = await file.read('a').catch((reason: unknown) => reason);
    expect(closed).toMatchObject({ code: 'ERR_TENSOR_SAFETENSORS' });
    expect((closed as Error).message).toContain('tensor "a" could not be read');
  });

  test('a folder that cannot be made is a sentence', async () => {
    write('file', 'x');
    await expect(saveShardedSafetensors(at('file/b'), { a })).rejects.toMatchObject({
      code: 'ERR_TENSOR_SAFETENSORS',
    });
  });
});

const python = process.env.RINGWISE_PYTHON || 'python3';
const hasNumpy = spawnSync(python, ['-c', 'import numpy']).status === 0;

test.skipIf(!hasNumpy)('what NumPy writes with Zip64 in every member is read', async () => {
  const program = `import numpy as np; np.savez('a.npz', a=np.arange(3, dtype='u1')); np.savez_compressed('b.npz', a=np.zeros(1 << 22, 'u1'))`;
  expect(spawnSync(python, ['-c', program], { cwd: folder }).status).toBe(0);
  expect((await loadNpz(at('a.npz'))).a!.toArray()).toEqual([0, 1, 2]);
  expect((await loadNpz(at('b.npz'))).a!.count).toBe(2 ** 22);
});
