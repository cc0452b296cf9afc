// Finds out which objects have been garbage-collected, without a turn of the event loop. (A WeakRef keeps its object
// until the next turn, and the callbacks of a FinalizationRegistry run in one.)
import { inspect } from 'node:util';

/** A value of a weak map. Inspecting the map marks the values whose keys still exist. */
export class Survivor {
  isThere = false;

  [inspect.custom](): string {
    this.isThere = true;
    return '';
  }
}

/** Returns the members of `all` whose keys have been garbage-collected. All of them were put into `keys` as values. */
export function taken<Kind extends Survivor>(keys: WeakMap<object, Survivor>, all: Iterable<Kind>): Kind[] {
  const survivors = [...all];
  for (const survivor of survivors) survivor.isThere = false;
  inspect(keys, { showHidden: true, depth: 0, maxArrayLength: null, customInspect: true });
  return survivors.filter(({ isThere }) => !isThere);
}
