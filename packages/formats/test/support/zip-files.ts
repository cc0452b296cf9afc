// Writes archives to files and reads them to the end.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readZipDirectory, readZipMember } from '../../src/index.ts';

/** Reads all members to the end. Returns the bytes of each by name, of each piece at most the first 10,000. */
export async function readZip(path: string, maxBytes: number): Promise<Record<string, number[]>> {
  const file = await open(path);
  try {
    const contents: [string, number[]][] = [];
    for (const member of await readZipDirectory(file, (await file.stat()).size, maxBytes)) {
      const bytes: number[] = [];
      for await (const piece of readZipMember(file, member)) bytes.push(...piece.subarray(0, 10_000));
      contents.push([member.name, bytes]);
    }
    return Object.fromEntries(contents);
  } finally {
    await file.close();
  }
}

/** Runs `use` with a file of these bytes, which is removed afterwards. */
export async function withBytes<T>(bytes: Uint8Array, use: (path: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ringwise-zip-'));
  try {
    const path = join(folder, 'a.zip');
    writeFileSync(path, bytes);
    return await use(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
