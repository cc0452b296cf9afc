// Names for the dimensions of a group: ranks on a grid, with a group for each line of it.
import { CollectiveError, type Failure, groupClosed } from '../errors.ts';
import type { Group } from '../group/group.ts';
import { nameOf } from '../group/members/subgroups.ts';
import { checkGroup } from '../options/check-group.ts';
import { foreignMember, shown, wrongOption } from '../options/errors.ts';
import { checkGroupOptions } from '../options/known-options.ts';
import type { MeshOptions } from '../options/mesh-options.ts';
import { refusingMembers } from '../options/not-awaited.ts';
import { meshClosed, unknownAxis } from './errors.ts';
import {
  type AxisSize,
  combinationsOf,
  coordinatesOf,
  indexOf,
  lineOf,
  type PerAxis,
  sizesOf,
} from './layout.ts';

/**
 * The ranks of a group on named axes (a device mesh); mesh() makes it. `Axis` are the names of the axes, `Flat` the
 * names of their combinations.
 */
export class Mesh<Axis extends string = string, Flat extends string = never> {
  /** The group whose ranks are on the axes. */
  readonly group: Group;
  /** Number of ranks along each axis. */
  readonly shape: PerAxis<Axis>;
  /** The coordinates of this rank: its index on each axis. */
  readonly at: PerAxis<Axis>;
  readonly #lines: ReadonlyMap<string, Group>;
  #closing: Promise<void> | null = null;

  /** Internal; call mesh(). */
  constructor(group: Group, shape: PerAxis<Axis>, lines: ReadonlyMap<string, Group>) {
    this.group = group;
    this.shape = shape;
    this.at = coordinatesOf(group.rank, shape) as PerAxis<Axis>;
    this.#lines = lines;
  }

  /**
   * Returns the group of the ranks whose coordinates differ from those of this rank only on this axis; for a
   * combination, only on its axes. A rank's number in that group is its index on the axis. Not collective. Throws
   * ERR_COLL_INVALID for an unknown name, and ERR_COLL_CLOSED after close().
   */
  axis(name: Axis | Flat): Group {
    if (this.#closing !== null) throw this.#error(meshClosed('mesh.axis'));
    const line = this.#lines.get(name);
    if (line === undefined) throw this.#error(unknownAxis('mesh.axis', shown(name), [...this.#lines.keys()]));
    return line;
  }

  /**
   * Returns the rank, in the mesh's group, with these coordinates. Axes that are left out have the coordinate of this
   * rank. Not collective. Throws ERR_COLL_INVALID for an unknown axis or an index outside of it.
   */
  rankOf(coordinates: { readonly [A in Axis]?: number }): number {
    if (typeof coordinates !== 'object' || coordinates === null)
      throw this.#error(
        wrongOption(
          'mesh.rankOf',
          "the argument 'coordinates'",
          'an object with an index for each axis',
          coordinates,
        ),
      );
    const shape: PerAxis = this.shape;
    const names = Object.keys(shape);
    for (const [name, index] of Object.entries(coordinates)) {
      if (!names.includes(name)) throw this.#error(unknownAxis('mesh.rankOf', shown(name), names));
      const end = shape[name]! - 1;
      if (!(Number.isSafeInteger(index) && (index as number) >= 0 && (index as number) <= end))
        throw this.#error(wrongOption('mesh.rankOf', `the index on axis '${name}'`, `0 to ${end}`, index));
    }
    return indexOf({ ...this.at, ...coordinates }, shape, names);
  }

  /** Whether close() was called on this rank. */
  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /** Closes the groups of all axes and combinations. The mesh's own group stays open. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= closeAll([...this.#lines.values()]);
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #error(failure: Failure): CollectiveError {
    return errorIn(this.group, failure);
  }
}

const errorIn = ({ name, rank, size }: Group, failure: Failure): CollectiveError =>
  new CollectiveError(failure, { group: name, rank, size });

async function closeAll(groups: readonly Group[]): Promise<void> {
  const ends = await Promise.allSettled(groups.map((group) => group.close()));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

const notAwaited = refusingMembers(
  { what: 'grid', call: 'mesh()', names: ['group', 'shape', 'at'] },
  Mesh.prototype,
  (member, fault) => new CollectiveError(foreignMember(member, fault), null),
);

/**
 * Puts the ranks of a group on named axes, of which the last varies fastest, and makes a group for each line along
 * an axis and for each combination in `flat`. Collective over the group; all ranks pass the same. All groups are made
 * here, so nothing waits later. Closing the group closes them. Rejects with ERR_COLL_INVALID for sizes that do not
 * multiply to the size of the group, and with ERR_COLL_MISMATCH if ranks pass different axes.
 *
 * @example
 * ```ts
 * const grid = await mesh(group, { dp: 'rest', tp: 2 }); // tp: ranks 0 and 1, ranks 2 and 3, …
 * await grid.axis('tp').allReduce(x);
 * ```
 */
export function mesh<
  const Axes extends { readonly [axis: string]: AxisSize },
  const Flat extends { readonly [name: string]: readonly (keyof Axes & string)[] } = Record<never, never>,
>(
  group: Group,
  axes: Axes,
  options: MeshOptions<Flat> = {},
): Promise<Mesh<keyof Axes & string, keyof Flat & string>> {
  return notAwaited(make(group, axes, options));
}

async function make<Axes extends string, Flat extends string>(
  group: Group,
  axes: { readonly [axis: string]: AxisSize },
  options: MeshOptions<{ readonly [name: string]: readonly string[] }>,
): Promise<Mesh<Axes, Flat>> {
  checkGroup('mesh', group);
  if (group.isClosed) throw errorIn(group, groupClosed('mesh'));
  const calls = { error: (failure: Failure) => errorIn(group, failure) };
  const refuse = (failure: Failure): never => {
    throw calls.error(failure);
  };
  checkGroupOptions(calls, 'mesh', options);
  const shape = sizesOf(axes, group.size, refuse);
  const names = Object.keys(shape);
  const flat = combinationsOf(options.flat, names, refuse);
  const wanted = [
    ...names.map((name): [string, readonly string[]] => [name, [name]]),
    ...Object.entries(flat),
  ];
  const { name = group.name, timeoutMs = group.timeoutMs } = options;
  // So that ranks with other axes are told, instead of getting groups that do not fit.
  const label = `mesh ${wanted.map(([line, parts]) => `${line}=${parts.map((part) => `${part}:${shape[part]}`)}`).join(' ')}`;
  await group.barrier({ label });
  const lines = new Map<string, Group>();
  try {
    for (const [line, parts] of wanted) {
      const { color, key, members } = lineOf(group.rank, shape, parts);
      const made = await group.split(color, key, { name: nameOf(`${name}.${line}`, members), timeoutMs });
      lines.set(line, made!);
    }
  } catch (error) {
    await Promise.allSettled([...lines.values()].map((made) => made.close()));
    throw error;
  }
  return new Mesh(group, shape as PerAxis<Axes>, lines);
}
