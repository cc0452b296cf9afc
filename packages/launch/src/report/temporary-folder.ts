// Removes temporary folders.
import { rmSync } from 'node:fs';

/**
 * Removes a temporary folder. On Windows it may be in use, by a rank that is still ending or a virus scanner. Then
 * tries again for about half a second, and leaves the folder if that fails, because a job must not fail for it.
 */
export function removeTemporary(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 4, retryDelay: 50 });
  } catch {
    // The folder stays.
  }
}
