// Finds where the records of a CSV file begin. A line end within quotes belongs to a field. Quotes within a
// field are doubled, so a byte is within quotes exactly if the number of quotes before it is odd.
import { badFile } from '../../errors.ts';
import { chunksOf, OffsetList } from '../file-chunks.ts';
import type { OpenFile } from '../open-file.ts';

const quote = 0x22;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** Returns the offset of each record and the end of the file. Skips empty lines. Line ends are \n or \r\n. */
export function csvRecords(file: OpenFile): Float64Array {
  const offsets = new OffsetList();
  let at = 0;
  let isQuoted = false;
  let isBetween = true; // whether the next byte begins a record or belongs to an empty line
  let begin = 0;
  for (const chunk of chunksOf(file)) {
    const first = at === 0 && chunk.length >= 3 && chunk.readUIntBE(0, 3) === 0xefbbbf ? 3 : 0; // byte order mark
    for (let i = first; i < chunk.length; i++) {
      const byte = chunk[i]!;
      if (isBetween && byte !== lineFeed && byte !== carriageReturn) {
        begin = at + i;
        offsets.add(begin);
        isBetween = false;
      }
      if (byte === quote) isQuoted = !isQuoted;
      else if (byte === lineFeed && !isQuoted) isBetween = true;
    }
    at += chunk.length;
  }
  if (isQuoted) {
    const where = `${file.path}:${lineAt(file, begin)}`;
    throw badFile(
      'CsvFile',
      where,
      ['a quoted field does not end', 'a closing quote', 'the end of the file'],
      'A quote is missing or doubled wrongly after this record, or the file is cut off.',
    );
  }
  offsets.add(file.size);
  return offsets.toArray();
}

/**
 * Returns the line of a byte, counted from 1. For error messages, because it reads the file up to that byte.
 */
export function lineAt(file: OpenFile, offset: number): number {
  let line = 1;
  let at = 0;
  for (const chunk of chunksOf(file)) {
    const end = Math.min(chunk.length, offset - at);
    for (let i = chunk.indexOf(lineFeed); i >= 0 && i < end; i = chunk.indexOf(lineFeed, i + 1)) line++;
    at += chunk.length;
    if (at >= offset) break;
  }
  return line;
}
