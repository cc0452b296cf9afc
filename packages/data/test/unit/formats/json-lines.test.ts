import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { JsonLinesFile, jsonLines } from '../../../src/formats/json/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'jsonl-'));
  path = join(folder, 'lines.jsonl');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function both(content: string): [unknown[], unknown[]] {
  writeFileSync(path, content);
  using file = new JsonLinesFile(path);
  return [[...jsonLines(path)], Array.from({ length: file.length }, (_, i) => file.get(i))];
}

describe('JSON lines', () => {
  it.each([
    ['the last line ended', '{"a":1}\n[2]\n"three"\n', [{ a: 1 }, [2], 'three']],
    ['the last line not ended', '1\n2', [1, 2]],
    ['Windows line ends', '{"a":1}\r\n2\r\n', [{ a: 1 }, 2]],
    ['line separators within strings, and text beyond ASCII', '"a\u2028b"\n"ä€😀"\n', ['a\u2028b', 'ä€😀']],
    ['a byte order mark', '\ufeff1\n"\ufeff"\n', [1, '\ufeff']],
    ['nothing in it', '', []],
  ])('are read from a file with %s, streamed and by number', (_, content, values) => {
    expect(both(content)).toEqual([values, values]);
  });

  it('are read across the chunks of the file, whatever their length', () => {
    const values = Array.from({ length: 3000 }, (_, i) => `é${'x'.repeat((i * 37) % 700)}${i}`);
    values.push('y'.repeat(600_000), 'z');
    const content = values.map((value) => `${JSON.stringify(value)}\n`).join('');
    expect(Buffer.byteLength(content)).toBeGreaterThan(4 * 256 * 1024);
    const [streamed, numbered] = both(content);
    expect(streamed).toEqual(values);
    expect(numbered).toEqual(values);
  });

  it('feed a loader, and a stream begins anew in each pass', () => {
    writeFileSync(path, '{"x":1}\n{"x":2}\n{"x":3}\n');
    using file = new JsonLinesFile<{ x: number }>(path);
    const byNumber = new DataLoader(file, { batchSize: 2, sampler: [2, 0] });
    expect([...byNumber].map(({ x }) => [...x.data])).toEqual([[3, 1]]);
    const streamed = new DataLoader(jsonLines<{ x: number }>(path), { batchSize: 2 });
    for (let pass = 0; pass < 2; pass++) {
      expect([...streamed].map(({ x }) => [...x.data])).toEqual([[1, 2], [3]]);
    }
  });

  it('name the line that is no JSON', () => {
    writeFileSync(path, '1\n{"a":\n3\n');
    using file = new JsonLinesFile(path);
    expect(file.get(2)).toBe(3);
    const failed = expect.objectContaining({
      code: 'ERR_DATA_FILE',
      cause: expect.any(SyntaxError) as unknown,
    });
    for (const read of [() => file.get(1), () => [...jsonLines(path)]]) {
      expect(read).toThrow(failed);
      expect(read).toThrow(`line 2 is no JSON; expected one value per line, got`);
    }
  });

  it('refuse a line that is not UTF-8, instead of replacing its bytes', () => {
    writeFileSync(path, Buffer.from('"a"\n"caf\xe9"\n', 'latin1'));
    using file = new JsonLinesFile(path);
    expect(file.get(0)).toBe('a');
    for (const read of [() => file.get(1), () => [...jsonLines(path)]]) {
      expect(read).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
      expect(read).toThrow(
        `JSON lines: a line is not UTF-8; expected text in UTF-8, got other bytes (${path}:2)`,
      );
    }
  });

  it('refuse a line that is not there', () => {
    writeFileSync(path, '1\n');
    using file = new JsonLinesFile(path);
    expect(() => file.get(1)).toThrow('JsonLinesFile: index 1 is outside the data set');
  });
});
