// Maps the ranks of a group to coordinates on named axes. Pure arithmetic: the last axis varies fastest.
import type { Failure } from '../errors.ts';
import { shown, wrongOption } from '../options/errors.ts';
import {
  axesDoNotMultiply,
  axisTwice,
  badAxisName,
  restDoesNotDivide,
  twoRests,
  unknownAxis,
} from './errors.ts';

/** A number of ranks, or 'rest' for the quotient of the group's size and the other axes. */
export type AxisSize = number | 'rest';

/** One number for each axis: its size, or a coordinate on it. */
export type PerAxis<Axis extends string = string> = { readonly [A in Axis]: number };

/** A failure that is thrown as an error by the caller, who knows the group. */
type Refuse = (failure: Failure) => never;

function checkName(name: string, refuse: Refuse): void {
  if (!/^[A-Za-z_][A-Za-z_0-9]*$/.test(name)) refuse(badAxisName(shown(name)));
}

const productOf = (sizes: readonly number[]): number => sizes.reduce((product, size) => product * size, 1);

/** Returns the sizes of all axes for a group of `size` ranks. Calls `refuse` if that is not possible. */
export function sizesOf(axes: unknown, size: number, refuse: Refuse): PerAxis {
  if (typeof axes !== 'object' || axes === null || Array.isArray(axes) || Object.keys(axes).length === 0)
    return refuse(wrongOption('mesh', 'axes', 'an object with a size for each of one or more axes', axes));
  const entries = Object.entries(axes) as [string, unknown][];
  let rest: string | null = null;
  for (const [name, value] of entries) {
    checkName(name, refuse);
    if (value === 'rest') {
      if (rest !== null) refuse(twoRests(rest, name));
      rest = name;
    } else if (!(Number.isSafeInteger(value) && (value as number) >= 1))
      refuse(wrongOption('mesh', `the size of axis '${name}'`, "a number of ranks or 'rest'", value));
  }
  const given = entries.flatMap(([, value]) => (value === 'rest' ? [] : [value as number]));
  const product = productOf(given);
  if (rest === null) {
    if (product !== size) refuse(axesDoNotMultiply(given.join(' × '), product, size));
  } else if (size % product !== 0) refuse(restDoesNotDivide(rest, product, size));
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value === 'rest' ? size / product : (value as number)]),
  );
}

/** Returns the combinations of axes by name, checked. Calls `refuse` if one is not usable. */
export function combinationsOf(
  flat: unknown,
  axes: readonly string[],
  refuse: Refuse,
): Readonly<Record<string, readonly string[]>> {
  if (flat === undefined) return {};
  const expected = 'an object with a list of axes for each name';
  if (typeof flat !== 'object' || flat === null || Array.isArray(flat))
    return refuse(wrongOption('mesh', 'flat', expected, flat));
  for (const [name, parts] of Object.entries(flat) as [string, unknown][]) {
    checkName(name, refuse);
    if (axes.includes(name)) refuse(axisTwice(name));
    if (!Array.isArray(parts) || parts.length === 0 || new Set(parts).size < parts.length)
      return refuse(wrongOption('mesh', `flat.${name}`, 'a list of axes, each once', parts));
    for (const part of parts) if (!axes.includes(part)) refuse(unknownAxis('mesh', shown(part), axes));
  }
  return flat as Record<string, readonly string[]>;
}

/** Returns the coordinates of a rank. */
export function coordinatesOf(rank: number, shape: PerAxis): PerAxis {
  let left = rank;
  const reversed = Object.entries(shape).reverse();
  const coordinates = reversed.map(([name, size]): [string, number] => {
    const index = left % size;
    left = (left - index) / size;
    return [name, index];
  });
  return Object.fromEntries(coordinates.reverse());
}

/** Returns the index of coordinates in the order of the axes `names`, the last of which varies fastest. */
export const indexOf = (coordinates: PerAxis, shape: PerAxis, names: readonly string[]): number =>
  names.reduce((index, name) => index * shape[name]! + coordinates[name]!, 0);

/** The ranks whose coordinates differ from those of one rank only on some axes. */
export interface Line {
  /** Index of the line among the lines along the same axes. */
  readonly color: number;
  /** Index of the rank on the line. */
  readonly key: number;
  /** All ranks of the line in order. */
  readonly members: readonly number[];
}

/** Returns the line along the axes `parts` on which `rank` lies. */
export function lineOf(rank: number, shape: PerAxis, parts: readonly string[]): Line {
  const names = Object.keys(shape);
  const others = names.filter((name) => !parts.includes(name));
  const size = productOf(Object.values(shape));
  const coordinates = Array.from({ length: size }, (_, other) => coordinatesOf(other, shape));
  const color = indexOf(coordinates[rank]!, shape, others);
  const keyOf = (other: number) => indexOf(coordinates[other]!, shape, parts);
  const members = [...coordinates.keys()].filter(
    (other) => indexOf(coordinates[other]!, shape, others) === color,
  );
  return { color, key: keyOf(rank), members: members.sort((a, b) => keyOf(a) - keyOf(b)) };
}
