import type { FileHandle } from 'node:fs/promises';

/** One read of the system takes less than 2 GiB. */
const maxReadBytes = 2 ** 30;

/** Fills `into` from byte `position` of a file on. Returns whether the file has that many bytes. */
export async function readFully(file: FileHandle, into: Uint8Array, position: number): Promise<boolean> {
  for (let done = 0; done < into.length; ) {
    const length = Math.min(into.length - done, maxReadBytes);
    const { bytesRead } = await file.read(into, done, length, position + done);
    if (bytesRead === 0) return false;
    done += bytesRead;
  }
  return true;
}
