// Reads parts of a file to a device: piece by piece into pinned memory, while the device copies the previous piece. The
// host never holds more than these pieces.
import type { FileHandle } from 'node:fs/promises';
import { deviceControl } from '../../backends/index.ts';
import { dtypeInfo } from '../../core/dtype.ts';
import { allocatePinned, type Storage } from '../../core/memory/storage.ts';
import type { Tensor } from '../../core/tensor.ts';
import { type CudaStream, currentStream } from '../../device/streams.ts';
import { bytesIn } from '../files.ts';
import { readElements, type StoredType } from '../stored-types.ts';

/** Bytes of a piece: enough for fast reading and copying, and a multiple of the size of every element. */
const pieceBytes = 2 ** 22;
const mostPieces = 2;

interface Piece {
  readonly pinned: Storage;
  /** The stream of the last copy from this piece; null before the first one. */
  stream: CudaStream | null;
}

/** Owns the pinned memory of one reader, which one transfer uses at a time: others wait. */
export class Upload {
  readonly #pieces: Piece[] = [];
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Fills a dense tensor of a CUDA device from byte `position` of a file. Returns whether the file has enough bytes.
   * The last copies may still be running then.
   */
  run(file: FileHandle, type: StoredType, tensor: Tensor, position: number): Promise<boolean> {
    const start = (): Promise<boolean> => this.#copy(file, type, tensor, position);
    const done = this.#last.then(start, start);
    this.#last = done;
    return done;
  }

  async #copy(file: FileHandle, type: StoredType, tensor: Tensor, position: number): Promise<boolean> {
    const { memory, count, device } = tensor;
    const { array, bytes: elementBytes } = dtypeInfo[memory.dtype];
    const most = pieceBytes / elementBytes;
    for (let done = 0; done < count; done += most) {
      const piece = await this.#piece();
      const { buffer, byteOffset } = piece.pinned.memory.host;
      const part = new array(buffer, byteOffset, Math.min(count - done, most));
      if (!(await readElements(file, type, position + done * type.bytes, part, done))) return false;
      piece.stream = currentStream(device);
      deviceControl().startWrite(memory, done, bytesIn(part));
    }
    return true;
  }

  /** Returns the next piece, when the last copy from it has ended, which may run on the stream of another transfer. */
  async #piece(): Promise<Piece> {
    if (this.#pieces.length < mostPieces)
      this.#pieces.push({ pinned: allocatePinned('uint8', pieceBytes), stream: null });
    const piece = this.#pieces[this.#next++ % mostPieces]!;
    while (!deviceControl().isIdle(piece.pinned.memory.host.buffer)) await piece.stream!.done();
    return piece;
  }

  /** Releases the pinned memory after the last transfer; the free list reuses it when its copies have ended. */
  async close(): Promise<void> {
    await this.#last.catch(() => {});
    for (const { pinned } of this.#pieces.splice(0)) pinned.release();
  }
}
