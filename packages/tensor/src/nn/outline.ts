// The text of a model: its modules as an outline, with the shapes of their tensors instead of the values.
import { Tensor } from '../core/tensor.ts';

/** A direct member of a module, with its name. */
type Member = readonly [name: string, value: unknown];

/** Tells whether a value is a list of numbers, such as a shape. */
export const isNumbers = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'number');

/** The facts about a module that its outline shows. */
export interface Outlined {
  readonly members: readonly Member[];
  /** Returns the text of a member that is a module; null of any other. */
  readonly ofModule: (value: unknown) => string | null;
}

/**
 * Returns the outline of a module: tensors and simple settings on the line of its name, and the modules in it on lines
 * of their own.
 */
export function outline(name: string, { members, ofModule }: Outlined): string {
  const settings: string[] = [];
  const inside: string[] = [];
  for (const [member, value] of members) {
    const text = ofModule(value);
    if (text === null) settings.push(...settingsOf(member, value));
    else inside.push(`(${member}): ${text}`);
  }
  const head = `${name}(${settings.join(', ')}`;
  if (inside.length === 0) return `${head})`;
  return `${head}\n${inside.map((text) => `  ${text.replaceAll('\n', '\n  ')}\n`).join('')})`;
}

/** Returns a member that is a tensor or a plain value, also those of an object with options. */
function settingsOf(name: string, value: unknown): string[] {
  if (value instanceof Tensor) {
    const dtype = value.dtype === 'float32' ? '' : `${value.dtype} `;
    return [`${name}: ${dtype}[${value.shape.join(', ')}]`];
  }
  if (typeof value === 'number' || typeof value === 'boolean') return [`${name}: ${value}`];
  if (isNumbers(value)) return [`${name}: [${(value as number[]).join(', ')}]`];
  if (typeof value === 'string') return [`${name}: '${value}'`];
  const isPlain =
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.entries(value).flatMap((entry) => settingsOf(...entry)) : [];
}
