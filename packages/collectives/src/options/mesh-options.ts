// Options of mesh().
import type { SubgroupOptions } from './options.ts';

/** Options of mesh(). `name` begins the names of its groups, such as "world.tp[0-1]"; default: the group's name. */
export interface MeshOptions<
  Flat extends { readonly [name: string]: readonly string[] } = {
    readonly [name: string]: readonly string[];
  },
> extends SubgroupOptions {
  /**
   * Combinations of axes, by name, that also get groups: `{ data: ['dp', 'cp'] }`. The last axis of the list varies
   * fastest.
   */
  readonly flat?: Flat;
}
