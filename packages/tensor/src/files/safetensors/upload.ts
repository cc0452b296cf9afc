// Reads parts of a file to a device: into pinned memory piece by piece, while the device copies the piece
// before. The host never holds more than these pieces.
import type { FileHandle } from 'node:fs/promises';
import { deviceControl } from '../../backends/index.ts';
import { dtypeInfo } from '../../core/dtype.ts';
import { allocatePinned, type Storage } from '../../core/storage.ts';
import type { Tensor } from '../../core/tensor.ts';
import type { Device } from '../../device/device.ts';
import { currentStream } from '../../device/streams.ts';
import { bytesIn } from '../files.ts';
import { readElements, type StoredType } from '../stored-types.ts';

/** Bytes of a piece: enough for fast reading and copying, and a multiple of every element. */
const pieceBytes = 2 ** 22;
const mostPieces = 2;

/** Owns the pinned memory of one reader, for one transfer at a time. */
export class Upload {
  readonly #pieces: Storage[] = [];
  #next = 0;
  #last: Promise<unknown> = Promise.resolve();

  /** Fills a dense tensor of a CUDA device from `position` of a file. Returns whether the file has enough bytes. */
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
      const { buffer, byteOffset } = (await this.#piece(device)).memory.host;
      const part = new array(buffer, byteOffset, Math.min(count - done, most));
      if (!(await readElements(file, type, position + done * type.bytes, part, done))) return false;
      deviceControl().startWrite(memory, done, bytesIn(part));
    }
    return true;
  }

  /** Returns pinned memory whose copy has ended. */
  async #piece(device: Device): Promise<Storage> {
    if (this.#pieces.length < mostPieces) this.#pieces.push(allocatePinned('uint8', pieceBytes));
    const piece = this.#pieces[this.#next++ % mostPieces]!;
    if (!deviceControl().isIdle(piece.memory.host.buffer)) await currentStream(device).done();
    return piece;
  }

  /** Releases the memory when its copies have ended. */
  async close(): Promise<void> {
    await this.#last.catch(() => {});
    for (const piece of this.#pieces.splice(0)) piece.release();
  }
}
