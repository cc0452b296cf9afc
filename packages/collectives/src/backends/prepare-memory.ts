// Memory that a process gets for its next group while it still works with the present one.
import { loadNative, type NativeAddon } from './native.ts';

/**
 * Gets memory for alloc() of the next group of this process whose ranks are all on this host, while the program goes
 * on. New memory takes the system some 100 ms for 100 MB, which that group need not wait for then. Replaces the memory
 * of an earlier call that no group has taken; 0 bytes only free that. Resolves when the memory is there, or at once
 * where there is no native addon, and so no shared memory.
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
