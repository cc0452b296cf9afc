// Rotary position embeddings: pairs of elements of queries and keys are turned, by an angle that grows with position.
import { checkOptions, optionChecks } from '../../checks/options.ts';
import { badRotary } from '../../checks/sequence-errors.ts';
import { checkValue, nonNegativeInteger, oneOf, positive } from '../../checks/value-checks.ts';
import { scope } from '../../core/context.ts';
import { arange, fromHost } from '../../core/creation.ts';
import { checkListed } from '../../core/host-numbers.ts';
import { broadcastShapes, sameShape } from '../../core/shape.ts';
import { Tensor } from '../../core/tensor.ts';
import { badOption, shown } from '../../errors.ts';
import { add, mul, sub } from '../elementwise/binary.ts';
import { requireFloat, requireTensor, to } from '../elementwise/convert.ts';
import { cos as cosOf, sin as sinOf } from '../elementwise/unary.ts';
import { cat, chunk, stack } from '../shape/join.ts';
import { unbind, unflatten } from '../shape/rearrange.ts';
import { flatten, unsqueeze } from '../shape/views.ts';

/** Options of rotaryEmbedding(). */
export interface RotaryEmbeddingOptions {
  /** Pair i turns by base^(−2i ÷ width) for each position. Default 10000. */
  readonly base?: number;
}

const rotaryEmbeddingOptions = optionChecks<RotaryEmbeddingOptions>({ base: positive });

/**
 * Returns cosines and sines [positions, width / 2] of float32 for applyRotary(). `positions` is a tensor of any shape,
 * or a number n for the positions 0 … n − 1. `width` is that of a head, and even.
 */
export function rotaryEmbedding(
  positions: Tensor | number,
  width: number,
  options: RotaryEmbeddingOptions = {},
): [cos: Tensor, sin: Tensor] {
  const op = 'rotaryEmbedding';
  checkOptions(op, options, rotaryEmbeddingOptions);
  if (!(positions instanceof Tensor)) checkValue(`${op}: positions`, positions, nonNegativeInteger);
  if (!(Number.isSafeInteger(width) && width > 0 && width % 2 === 0))
    throw badOption(`${op}: width`, 'an even integer ≥ 2', shown(width));
  const { base = 10_000 } = options;
  checkListed(width / 2);
  return scope(() => {
    const own = positions instanceof Tensor ? to(positions, 'float32') : arange(0, positions);
    const rates = Float32Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width));
    const angles = mul(unsqueeze(own, -1), to(fromHost(rates, [width / 2]), own.device));
    return [cosOf(angles), sinOf(angles)];
  });
}

/** Options of applyRotary(). */
export interface ApplyRotaryOptions {
  /**
   * Which elements are a pair. 'half' (default): i and i + width / 2, as in the Llama of Hugging Face and GPT-NeoX.
   * 'interleaved': 2i and 2i + 1, as in the paper, GPT-J and Meta's own Llama.
   */
  readonly layout?: 'half' | 'interleaved';
}

const applyRotaryOptions = optionChecks<ApplyRotaryOptions>({ layout: oneOf('half', 'interleaved') });

/**
 * Turns each pair (a, b) of x [..., time, width] into (a cos − b sin, b cos + a sin). cos and sin, as rotaryEmbedding()
 * makes them, broadcast to [..., time, width / 2]. The result has the dtype of x.
 */
export function applyRotary(x: Tensor, cos: Tensor, sin: Tensor, options: ApplyRotaryOptions = {}): Tensor {
  const op = 'applyRotary';
  requireFloat(op, x);
  for (const table of [cos, sin]) requireTensor(op, table);
  checkOptions(op, options, applyRotaryOptions);
  const isInterleaved = options.layout === 'interleaved';
  const width = x.shape.at(-1) ?? 0;
  const half = [...x.shape.slice(0, -1), width / 2];
  const fits =
    width > 0 &&
    width % 2 === 0 &&
    [cos, sin].every((table) => sameShape(broadcastShapes(op, table.shape, half), half));
  if (!fits) throw badRotary(x.shape, cos.shape, sin.shape);
  return scope(() => {
    const [a, b] = isInterleaved ? unbind(unflatten(x, -1, [width / 2, 2]), -1) : chunk(x, 2, -1);
    const first = sub(mul(a!, cos), mul(b!, sin));
    const second = add(mul(b!, cos), mul(a!, sin));
    const out = isInterleaved ? flatten(stack([first, second], -1), -2) : cat([first, second], -1);
    return to(out, x.dtype);
  });
}
