import type { FileHandle } from 'node:fs/promises';

/** Bytes of one read; the system does not allow 2 GiB or more. */
const maxReadBytes = 2 ** 30;

/** Fills `into` from byte `position` of a file on. Resolves with false if the file ends before `into` is full. */
export async function readFully(file: FileHandle, into: Uint8Array, position: number): Promise<boolean> {
  for (let done = 0; done < into.length; ) {
    const length = Math.min(into.length - done, maxReadBytes);
    const { bytesRead } = await file.read(into, done, length, position + done);
    if (bytesRead === 0) return false;
    done += bytesRead;
  }
  return true;
}
