// Checks of options objects: all names are known, and every value has the type that the option takes. Each
// table of checks is next to the interface of its options, and the compiler checks that it is complete.
import { badOption, shown, unknownOptions } from '../errors.ts';
import { unknownOption } from './option-names.ts';
import { type Check, isTensor } from './value-checks.ts';

/** The options of one function by name. */
export type OptionChecks = ReadonlyMap<string, Check>;

/** Makes the table of an options interface. The type requires every option. */
export const optionChecks = <O>(checks: { readonly [Name in keyof O]-?: Check }): OptionChecks =>
  new Map(Object.entries<Check>(checks));

/**
 * Our options by their names in other libraries. Names that differ only in case, `_` and `-` are recognized without
 * an entry.
 */
const foreignNames: Readonly<Record<string, string>> = {
  attn_mask: 'mask',
  atol: 'tolerance',
  decay: 'weightDecay',
  dropout_p: 'dropout',
  elementwise_affine: 'affine',
  epsilon: 'eps',
  is_causal: 'causal',
  learning_rate: 'lr',
  learningRate: 'lr',
  l2: 'weightDecay',
  norm: 'p',
  reduce: 'reduction',
  rtol: 'tolerance',
  size_average: 'reduction',
  total_iters: 'totalSteps',
  unbiased: 'correction',
  ddof: 'correction',
};

/**
 * Throws ERR_TENSOR_ARGUMENT unless `options` is undefined, or an object whose own names are all in `checks` and
 * whose values fit. Undefined values count as absent.
 */
export function checkOptions(op: string, options: unknown, checks: OptionChecks): void {
  if (options === undefined) return;
  const isObject = typeof options === 'object' && options !== null && !Array.isArray(options);
  if (!isObject || isTensor(options)) throw wrongOptions(op, options, checks);
  for (const name in options) {
    const check = checks.get(name);
    if (check === undefined) {
      if (Object.hasOwn(options, name)) throw wrongOptions(op, options, checks);
      continue;
    }
    const value = (options as Record<string, unknown>)[name];
    if (value !== undefined && !check.fits(value))
      throw badOption(`${op}: ${name}`, check.expected, shown(value));
  }
}

/** Advice for options of PyTorch that do not exist here, by their names in lower case without underscores. */
const hints: Readonly<Record<string, string>> = {
  alpha: 'Multiply the second operand before: a.add(b.mul(alpha)).',
  batchfirst: 'Tensors are [batch, time, width].',
  creategraph: 'There are no gradients of gradients.',
  decimals: 'Use a.mul(10 ** decimals).round().div(10 ** decimals).',
  dim: 'Dimensions are arguments, in the place that the signature says.',
  dtype: 'Convert the operand before, or the result, with to().',
  inplace: 'Results are new tensors; names that end in _ write.',
  out: 'Results are new tensors; copy_ writes into one.',
  roundingmode: 'Use floor or trunc of the quotient.',
};

/** Returns the error for options that are no object, or have a name that is not in `checks`. */
function wrongOptions(op: string, options: unknown, checks: OptionChecks): Error {
  const known = [...checks.keys()];
  const anObject = `expected an object with ${known.join(', ')}`;
  if (isTensor(options)) return unknownOptions(op, `options are a tensor; ${anObject}`);
  const ours = Object.entries(foreignNames).filter(([, name]) => checks.has(name));
  const found = unknownOption(options, known, Object.fromEntries(ours)) ?? 'options are a list';
  const fault = found.replace('expected an object', anObject);
  if (typeof options === 'number') return unknownOptions(op, fault, numberHint(op, options, checks));
  const name = /^unknown option '(.*?)'/.exec(fault)?.[1]?.replaceAll('_', '').toLowerCase();
  return unknownOptions(
    op,
    fault,
    name !== undefined && Object.hasOwn(hints, name) ? hints[name] : undefined,
  );
}

/** Returns advice for a number in place of the options. */
function numberHint(op: string, given: number, checks: OptionChecks): string | undefined {
  if (checks.has('lr')) return `For a learning rate write { lr: ${given} }.`;
  const makesTensors = checks.has('device') && checks.has('requiresGrad');
  return makesTensors ? `If it is a size, put all sizes into an array: ${op}([2, 3]).` : undefined;
}

const none: OptionChecks = new Map();

/**
 * Throws ERR_TENSOR_ARGUMENT if `extra`, a surplus argument, is an options object: PyTorch options that an
 * operation does not have here would otherwise be ignored. Other surplus arguments are accepted, as in
 * list.map(neg).
 */
export function refuseOptions(op: string, extra: unknown): void {
  const isPlain =
    typeof extra === 'object' && extra !== null && Object.getPrototypeOf(extra) === Object.prototype;
  if (isPlain) throw wrongOptions(op, extra, none);
}
