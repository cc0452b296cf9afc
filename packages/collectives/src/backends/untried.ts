// Systems for which the native addon is built but has not been run yet. 'auto' uses tcp there and does not even load
// the addon, because a crash in it would end the process.
import { CollectiveError } from '../errors.ts';
import { hostUntried } from '../init/errors.ts';

const names = new Map([['darwin', 'macOS']]);

/** Returns why this system's addon is used only by programs that ask for it; null if it has been run. */
export function whyUntried(): CollectiveError | null {
  const name = names.get(process.platform);
  return name === undefined ? null : new CollectiveError(hostUntried(name), null);
}
