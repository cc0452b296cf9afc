// Allocates memory for the next group of this process while the present group still works.
import { loadNative, type NativeAddon } from './native.ts';

/**
 * Maps `bytes` of shared memory in the background, for alloc() of the next group of this process whose ranks are all on
 * this host. Mapping takes about 100 ms for 100 MB, which that group then does not wait for. Replaces memory of an
 * earlier call that no group has used; 0 only frees that memory. Resolves when the memory is mapped, or at once if
 * there is no native addon, and therefore no shared memory.
 *
 * @internal
 */
export async function prepareMemory(bytes: number): Promise<void> {
  let native: NativeAddon;
  try {
    native = loadNative();
  } catch {
    return;
  }
  await native.prepareMemory(bytes);
}
