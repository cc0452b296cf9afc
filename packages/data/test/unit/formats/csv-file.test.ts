import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CsvColumns, CsvFile, type CsvOptions } from '../../../src/formats/csv/index.ts';
import { DataLoader } from '../../../src/index.ts';

let folder: string;
let path: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'csv-'));
  path = join(folder, 'table.csv');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function open<const C extends CsvColumns>(
  content: string | Buffer,
  options: CsvOptions<C>,
): Promise<CsvFile<C>> {
  writeFileSync(path, content);
  return CsvFile.open(path, options);
}

const all = <C extends CsvColumns>(file: CsvFile<C>) =>
  Array.from({ length: file.length }, (_, i) => file.get(i));
const xAndName = { columns: { x: 'float64', name: 'string' } } as const;

describe('CsvFile', () => {
  it.each([
    ['the last line ended', 'name,x\na,1\nb,2.5\n'],
    ['the last line not ended', 'name,x\na,1\nb,2.5'],
    ['Windows line ends', 'name,x\r\na,1\r\nb,2.5\r\n'],
    ['empty lines', '\n\nname,x\n\na,1\n\r\n\nb,2.5\n\n'],
    ['a byte order mark', '\ufeffname,x\na,1\nb,2.5\n'],
    ['columns that are not asked for', 'id,name,z,x\n7,a,,1\n8,b,,2.5\n'],
    ['quotes', '"name","x"\n"a",1\n"b","2.5"\n'],
  ])('reads a table with %s', async (_, content) => {
    using file = await open(content, xAndName);
    expect(all(file)).toEqual([
      { x: 1, name: 'a' },
      { x: 2.5, name: 'b' },
    ]);
  });

  it('reads fields with line ends, delimiters, doubled quotes and text beyond ASCII in them', async () => {
    const names = ['a\nb', 'a\r\n\n"b"', 'a,b', '""', 'ä€😀\n'];
    const rows = names.map((name, i) => `${i},"${name.replaceAll('"', '""')}"\n`).join('');
    using file = await open(`x,name\n${rows}`, xAndName);
    expect(all(file)).toEqual(names.map((name, x) => ({ x, name })));
  });

  it('refuses lines that end with \\r alone, which would be one header', async () => {
    const opened = open('x,name\r1,a\r2,b\r', { columns: { x: 'float64' } });
    await expect(opened).rejects.toThrow(
      'lines end with \\r alone; expected lines that end with \\n or \\r\\n',
    );
    using file = await open('x,"na\r\nme"\r\n1,a\r\n', { columns: { x: 'float64' } });
    expect(all(file)).toEqual([{ x: 1 }]);
  });

  it('takes names and delimiter from the options', async () => {
    using file = await open('1;a,b\n2;c\n', { ...xAndName, header: ['x', 'name'], delimiter: ';' });
    expect(all(file)).toEqual([
      { x: 1, name: 'a,b' },
      { x: 2, name: 'c' },
    ]);
  });

  it('gives a loader typed arrays of the types asked for, in any order', async () => {
    using file = await open('id,w,v,name\n16777217,0.1,0.1,a\n-2,1e3,-5,b\n3,7,8,c\n', {
      columns: { id: 'int32', w: 'float32', v: 'float64', name: 'string' },
    });
    const [batch] = new DataLoader(file, { batchSize: 2, sampler: [2, 0] });
    expect(batch).toEqual({
      id: { data: Int32Array.of(3, 16777217), shape: [2] },
      w: { data: Float32Array.of(7, 0.1), shape: [2] },
      v: { data: Float64Array.of(8, 0.1), shape: [2] },
      name: ['c', 'a'],
    });
  });

  it('reads records across the chunks of the file, whatever their length', async () => {
    const values = Array.from({ length: 3000 }, (_, i) => `é\n${'x'.repeat((i * 37) % 700)}${i}`);
    using file = await open(`name\n${values.map((value) => `"${value}"\n`).join('')}`, {
      columns: { name: 'string' },
    });
    expect(all(file).map(({ name }) => name)).toEqual(values);
  });

  it('is empty without records, and has no columns without a header', async () => {
    using file = await open('x,name\n', xAndName);
    expect(file.length).toBe(0);
    await expect(open('', xAndName)).rejects.toThrow('no such column; expected a header, got "x"');
  });

  it.each([
    [
      'text in a number',
      '\nx,name\n1,a\n\none,b\n',
      `csv:5). Mend`,
      'column "x"; expected a number (float64), got "one"',
    ],
    [
      'nothing in a number',
      'x,name\n1,a\n ,b\n',
      `csv:3). Mend`,
      'column "x"; expected a number (float64), got " "',
    ],
    ['a field too many', 'x,name\n1,a\n2,b,c\n', `csv:3). Mend`, 'expected 2 fields as in the header, got 3'],
    ['a field too few', 'x,name\n1,a\n2\n', `csv:3). Mend`, 'expected 2 fields as in the header, got 1'],
    ['text behind a quote', 'x,name\n1,a\n2,"b"c\n', `csv:3). Mend`, 'Invalid Closing Quote'],
  ])('names line and column of %s, alone and in a batch', async (_, content, where, what) => {
    using file = await open(content, xAndName);
    expect(file.get(0)).toEqual({ x: 1, name: 'a' });
    for (const read of [() => file.get(1), () => file.getBatch([0, 1])]) {
      expect(read).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
      expect(read).toThrow(where);
      expect(read).toThrow(what);
    }
  });

  it('refuses a record that is not UTF-8, instead of replacing its bytes', async () => {
    using file = await open(Buffer.from('x,name\n1,a\n2,caf\xe9\n', 'latin1'), xAndName);
    expect(file.get(0)).toEqual({ x: 1, name: 'a' });
    for (const read of [() => file.get(1), () => file.getBatch([0, 1])]) {
      expect(read).toThrow(expect.objectContaining({ code: 'ERR_DATA_FILE' }));
      expect(read).toThrow(/a line is not UTF-8; expected text in UTF-8, got other bytes \(.*:3\)/);
    }
    await expect(open(Buffer.from('x,n\xe4me\n', 'latin1'), xAndName)).rejects.toThrow(/not UTF-8.*:1\)/);
  });

  it('refuses a fraction, and a number of more than 32 bits, in an int32', async () => {
    using file = await open('x\n1.5\n2147483648\n-0\n', { columns: { x: 'int32' } });
    expect(() => file.get(0)).toThrow('expected a number (int32), got "1.5"');
    expect(() => file.get(1)).toThrow('got "2147483648"');
    expect(file.getBatch([2]).x.data).toEqual(Int32Array.of(0));
  });

  it('refuses a file that is cut off within a quoted field, a missing column, an index outside', async () => {
    await expect(open('x,name\n1,"a\nb\nc,d', xAndName)).rejects.toThrow(
      'a quoted field does not end; expected a closing quote, got the end of the file',
    );
    await expect(open('x,name\n1,"a\nb\nc,d', xAndName)).rejects.toThrow('table.csv:2). A quote is missing');
    await expect(open('x,names\n', xAndName)).rejects.toThrow(
      'no such column; expected "x", "names", got "name"',
    );
    await expect(open('x,names\n', xAndName)).rejects.toThrow(
      /table\.csv:1\)\. Name columns of the file, set delimiter/,
    );
    using file = await open('x,name\n1,a\n', xAndName);
    expect(() => file.get(1)).toThrow('CsvFile: index 1 is outside the data set');
  });
});
