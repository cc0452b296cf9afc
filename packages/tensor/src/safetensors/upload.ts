// Parts of a file on their way to a device: read into pinned memory piece by piece, while the device copies the piece before.
// The host never holds more than the pieces.
import type { FileHandle } from 'node:fs/promises';
import { deviceControl } from '../backends/index.ts';
import type { Device } from '../device.ts';
import { bytesOf } from '../dtype.ts';
import { bytesIn, readFully } from '../files.ts';
import { allocatePinned, type Storage } from '../storage.ts';
import { currentStream } from '../streams.ts';
import type { Tensor } from '../tensor.ts';

/** As many bytes as make reading and copying fast; a multiple of every element. */
const pieceBytes = 2 ** 22;
const mostPieces = 2;

/** The pinned memory of one reader. One transfer at a time. */
export class Upload {
  readonly #pieces: Storage[] = [];
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Fills a dense tensor of a CUDA device with what a file has from `position` on. Returns whether that is enough. */
  run(file: FileHandle, tensor: Tensor, position: number): Promise<boolean> {
    const start = (): Promise<boolean> => this.#copy(file, tensor, position);
    const done = this.#last.then(start, start);
    this.#last = done;
    return done;
  }

  async #copy(file: FileHandle, { memory, count, device }: Tensor, position: number): Promise<boolean> {
    const elementBytes = bytesOf(memory.dtype);
    const bytes = count * elementBytes;
    for (let done = 0; done < bytes; done += pieceBytes) {
      const piece = await this.#piece(device);
      const part = bytesIn(piece.memory.host).subarray(0, Math.min(bytes - done, pieceBytes));
      if (!(await readFully(file, part, position + done))) return false;
      deviceControl().startWrite(memory, done / elementBytes, part);
    }
    return true;
  }

  /** Pinned memory whose copy has ended. */
  async #piece(device: Device): Promise<Storage> {
    if (this.#pieces.length < mostPieces) this.#pieces.push(allocatePinned('uint8', pieceBytes));
    const piece = this.#pieces[this.#next++ % mostPieces]!;
    if (!deviceControl().isIdle(piece.memory.host.buffer)) await currentStream(device).done();
    return piece;
  }

  /** Gives the memory back, for when its copies have ended. */
  async close(): Promise<void> {
    await this.#last.catch(() => {});
    for (const piece of this.#pieces.splice(0)) piece.release();
  }
}
