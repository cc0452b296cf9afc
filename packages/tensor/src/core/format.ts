// Prints tensors as PyTorch does: four digits, one width for all numbers, scientific notation for a wide
// range, and only the edges of large tensors.
import type { Memory } from '../backends/operands.ts';
import { type DType, isFloat } from './dtype.ts';
import { reader, type Value } from './element.ts';
import type { Shape } from './shape.ts';

/** The parts of a tensor that are printed. */
interface Printed {
  readonly shape: Shape;
  readonly strides: readonly number[];
  /** Index of the first element in the memory. */
  readonly offset: number;
  readonly count: number;
  readonly dtype: DType;
  readonly memory: Memory;
  readonly target: { readonly isLeaf: false; readonly name: string } | { readonly isLeaf: true } | null;
}

const lineWidth = 80;
const edgeItems = 3;
const summaryThreshold = 1000;
const prefix = 'tensor(';

type Cell = (value: Value | boolean) => string;

const scientific = (value: number): string => {
  const [digits, exponent] = value.toExponential(4).split('e') as [string, string];
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`;
};

const nonFinite = (value: number): string => (Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf');

/** Returns the function that writes one float, given all floats that will be shown. */
function floatStyle(shown: readonly number[]): (value: number) => string {
  const sizes = shown.filter((x) => Number.isFinite(x) && x !== 0).map(Math.abs);
  const largest = sizes.reduce((a, b) => Math.max(a, b), 0);
  const smallest = sizes.reduce((a, b) => Math.min(a, b), Infinity);
  const isWhole = sizes.every(Number.isInteger);
  const isWide = largest / smallest > 1000 || largest > 1e8 || (!isWhole && smallest < 1e-4);
  if (sizes.length > 0 && isWide) return scientific;
  return isWhole ? (value) => `${value.toFixed(0)}.` : (value) => value.toFixed(4);
}

function cellFormat(shown: readonly (Value | boolean)[]): Cell {
  const floats = shown.filter((value): value is number => typeof value === 'number');
  const style = floatStyle(floats);
  const text: Cell = (value) => {
    if (typeof value !== 'number') return `${value}`;
    if (!Number.isFinite(value)) return nonFinite(value);
    return Object.is(value, -0) ? `-${style(0)}` : style(value);
  };
  // PyTorch ignores zeros, NaN and infinities when it chooses the width.
  const sized = shown.filter((value) => typeof value !== 'number' || (Number.isFinite(value) && value !== 0));
  const width = sized.reduce<number>((most, value) => Math.max(most, text(value).length), 1);
  return (value) => text(value).padStart(width);
}

/** Returns the positions to show along a dimension; null is shown as dots. Makes no list of a dimension's size. */
function shownPositions(size: number, isSummary: boolean): (number | null)[] {
  const from = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
  if (!isSummary || size <= 2 * edgeItems) return from(0, size);
  return [...from(0, edgeItems), null, ...from(size - edgeItems, edgeItems)];
}

function render({ shape, strides, offset, count, dtype, memory }: Printed): string {
  const isSummary = count > summaryThreshold;
  const read = reader(memory);
  const positions = shape.map((size) => shownPositions(size, isSummary));
  const value = (at: number): Value | boolean => {
    if (dtype === 'bool') return read(at) === 1;
    return isFloat(dtype) ? read(at) : BigInt(read(at));
  };

  let shownAt = [offset];
  for (const [d, shown] of positions.entries()) {
    shownAt = shownAt.flatMap((at) => shown.flatMap((i) => (i === null ? [] : [at + i * strides[d]!])));
  }
  const cell = cellFormat(shownAt.map(value));

  const row = (at: number, indent: number): string => {
    const cells = positions[shape.length - 1]!.map((i) =>
      i === null ? ' ...' : cell(value(at + i * strides[shape.length - 1]!)),
    );
    const perLine = Math.max(1, Math.floor((lineWidth - indent) / (cell(value(at)).length + 2)));
    const lines: string[] = [];
    for (let i = 0; i < cells.length; i += perLine) lines.push(cells.slice(i, i + perLine).join(', '));
    return `[${lines.join(`,\n${' '.repeat(indent + 1)}`)}]`;
  };
  const nest = (dim: number, at: number, indent: number): string => {
    if (dim === shape.length) return cell(value(at));
    if (dim === shape.length - 1) return row(at, indent);
    const parts = positions[dim]!.map((i) =>
      i === null ? '...' : nest(dim + 1, at + i * strides[dim]!, indent + 1),
    );
    const gap = `,${'\n'.repeat(shape.length - dim - 1)}${' '.repeat(indent + 1)}`;
    return `[${parts.join(gap)}]`;
  };
  return nest(0, offset, prefix.length);
}

/** Returns whether the printed digits identify the dtype. */
const isPlain = (dtype: DType): boolean => dtype === 'float32' || dtype === 'int64' || dtype === 'bool';

export function formatTensor(tensor: Printed): string {
  const { shape, dtype, target } = tensor;
  const notes: string[] = [];
  if (tensor.count === 0 && shape.length !== 1) notes.push(`shape=[${shape.join(', ')}]`);
  if (!isPlain(dtype)) notes.push(`dtype=${dtype}`);
  if (target !== null) notes.push(target.isLeaf ? 'requiresGrad=true' : `gradFn=<${target.name}>`);
  let text = prefix + (tensor.count === 0 ? '[]' : render(tensor));
  for (const note of notes) {
    const lastLine = text.slice(text.lastIndexOf('\n') + 1);
    const fits = lastLine.length + note.length + 3 <= lineWidth;
    text += fits ? `, ${note}` : `,\n${' '.repeat(prefix.length)}${note}`;
  }
  return `${text})`;
}
