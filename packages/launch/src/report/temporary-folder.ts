// Removes folders that hold nothing that is needed any more.
import { rmSync } from 'node:fs';

/**
 * Removes a temporary folder. On Windows it may be in use: by a rank that has not quite ended, or a scanner of viruses.
 * It is then tried again for about half a second, and left there if that does not help, because no job may fail by
 * it.
 */
export function removeTemporary(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 4, retryDelay: 50 });
  } catch {
    // It stays.
  }
}
