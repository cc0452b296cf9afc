// Memory for the view in which a learner becomes a member.
import { prepareMemory } from '@ringwise/collectives';

/**
 * Maps memory for the buckets of the next view in the background; 0 bytes free it if there is no such view. Does not
 * wait. If it fails, the members wait for the memory when they enter the view.
 */
export function prepare(bytes: number): void {
  prepareMemory(bytes).catch(() => {});
}
