// Padding: more indices in front of and behind the last dimensions, or fewer where a size is negative.

import { graphOf } from '../../autograd/graph.ts';
import { isRecording, record } from '../../autograd/node.ts';
import { kernels } from '../../backends/index.ts';
import { checkFits, checkList } from '../../checks/arguments.ts';
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { anyNumber, oneOf } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { checkListed } from '../../core/host-numbers.ts';
import { denseLayout, type Layout, narrowed } from '../../core/layout.ts';
import { type Shape, sameShape } from '../../core/shape.ts';
import { empty, type Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { clone, requireTensor } from '../elementwise/convert.ts';
import { narrow } from '../shape/views.ts';
import { badPadding, paddingRank } from './errors.ts';
import { takenAt } from './positions.ts';

/** The way in which pad() fills new elements. */
export type PadMode = 'constant' | 'reflect' | 'replicate' | 'circular';

/** Options of pad(). */
export interface PadOptions {
  /**
   * 'constant': with `value`; 'reflect': mirrored at the outermost element; 'replicate': with the outermost element;
   * 'circular': with the elements of the other end. Default 'constant'.
   */
  readonly mode?: PadMode;
  /** The number for mode 'constant', which the dtype must hold. Default 0. */
  readonly value?: number;
}

export const padModes = oneOf('constant', 'reflect', 'replicate', 'circular');
const padOptions = optionChecks<PadOptions>({ mode: padModes, value: anyNumber });

/** Elements added to one dimension on both sides; negative numbers remove elements. */
interface Edge {
  readonly dim: number;
  readonly before: number;
  readonly after: number;
}

/**
 * Pads the last dimensions of `a`: `sizes` is [before, after] of the last dimension, then of the one before it, and so
 * on. Negative sizes drop elements. Modes other than 'constant' take tensors [channels, …] or [batch, channels, …],
 * pad all dimensions behind the channels, and at most three; 'reflect' adds less than the size, 'circular' at most the
 * size. Takes every dtype. Returns a copy.
 */
export function pad(a: Tensor, sizes: readonly number[], options: PadOptions = {}): Tensor {
  requireTensor('pad', a);
  checkOptions('pad', options, padOptions);
  checkList('pad', 'the sizes', sizes);
  const { mode = 'constant', value = 0 } = options;
  const isEven = sizes.length % 2 === 0 && sizes.every((size) => Number.isSafeInteger(size));
  if (!isEven || sizes.length > 2 * a.rank)
    throw badOption('pad: sizes', `an even number of integers, at most ${2 * a.rank}`, shown(sizes));
  const edges = Array.from({ length: sizes.length / 2 }, (_, i): Edge => {
    return { dim: a.rank - 1 - i, before: sizes[2 * i]!, after: sizes[2 * i + 1]! };
  });
  if (mode === 'constant') {
    checkFits('pad', value, a.dtype);
    for (const edge of edges) checkCut(a.shape, edge, 0);
    return constantPad(a, edges, value);
  }
  if (value !== 0) throw badOption(`pad: value with mode '${mode}'`, '0', shown(value));
  const count = edges.length;
  if (count < 1 || count > 3 || (a.rank !== count + 1 && a.rank !== count + 2))
    throw paddingRank(mode, a.shape, sizes.length);
  for (const edge of edges) checkFilled(mode, a.shape, edge);
  const sizeOf = ({ dim, before, after }: Edge): number => a.shape[dim]! + before + after;
  // As in PyTorch, some dimensions may become empty, but not all.
  const [first] = edges as [Edge];
  if (mode !== 'circular' && edges.every((edge) => sizeOf(edge) === 0))
    throw badPadding(mode, a.shape, first.dim, first.before, first.after);
  const changed = edges.filter(({ before, after }) => before !== 0 || after !== 0);
  if (changed.length === 0) return clone(a);
  return scope(() =>
    changed.reduce((x, edge) => takenAt('pad', x, edge.dim, placesOf(mode, x.shape[edge.dim]!, edge)), a),
  );
}

/** Throws if a dimension would have fewer than `least` elements, or if more is cut on one side than there is. */
function checkCut(shape: Shape, { dim, before, after }: Edge, least: number): void {
  const size = shape[dim]!;
  const tooMuch = size + Math.min(0, before) + Math.min(0, after) < 0;
  if (tooMuch || size + before + after < least) throw badPadding('constant', shape, dim, before, after);
}

function checkFilled(mode: PadMode, shape: Shape, edge: Edge): void {
  const { dim, before, after } = edge;
  const size = shape[dim]!;
  const most = Math.max(before, after);
  const kept = size + Math.min(0, before) + Math.min(0, after);
  const fits =
    mode === 'circular'
      ? most <= Math.max(0, kept) && size + before + after >= 0
      : size + before + after >= 0 && size > 0 && (mode === 'replicate' || most < size);
  const hasChannels = mode === 'circular' || shape.slice(1).every((each) => each > 0);
  if (!fits || !hasChannels) throw badPadding(mode, shape, dim, before, after);
}

/** Returns the index of the source of each element along one dimension. */
function placesOf(mode: PadMode, size: number, { before, after }: Edge): number[] {
  checkListed(size + before + after);
  return Array.from({ length: size + before + after }, (_, o) => {
    const at = o - before;
    if (mode === 'replicate') return Math.min(Math.max(at, 0), size - 1);
    if (mode === 'reflect') return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
    // Negative sizes remove elements first; the remaining ones are repeated.
    const first = Math.max(0, -before);
    const kept = size - first - Math.max(0, -after);
    return first + ((at - first + kept) % kept);
  });
}

function constantPad(a: Tensor, edges: readonly Edge[], value: number): Tensor {
  const shape = [...a.shape];
  for (const { dim, before, after } of edges) shape[dim]! += before + after;
  return scope(() => {
    let kept = a;
    for (const { dim, before, after } of edges) {
      const [front, back] = [Math.min(0, before), Math.min(0, after)];
      if (front < 0 || back < 0) kept = narrow(kept, dim, -front, a.shape[dim]! + front + back);
    }
    if (sameShape(shape, kept.shape)) return clone(kept);
    const out = empty(a.dtype, shape, a.device);
    kernels().copy(shape, out.strided, value);
    const inner = edges.reduce(
      (layout: Layout, { dim, before }) => narrowed(layout, dim, Math.max(0, before), kept.shape[dim]!, 1),
      denseLayout(shape),
    );
    const { offset, strides } = inner;
    if (kept.count > 0)
      kernels().copy(kept.shape, { memory: out.storage.memory, offset, strides }, kept.strided);
    if (!isRecording(kept)) return out;
    const target = kept.target!;
    const own = kept.shape;
    return record('pad', out, [target], [], (grad, graph) => {
      if (graph) {
        let inside = graphOf(graph).grad;
        for (const { dim, before } of edges) inside = inside.narrow(dim, Math.max(0, before), own[dim]!);
        graphOf(graph).send(target, inside);
        return;
      }
      const into = target.begin();
      if (target.count > 0) kernels().copy(own, into.dense, { memory: grad.memory, offset, strides });
      target.end(into);
    });
  });
}
