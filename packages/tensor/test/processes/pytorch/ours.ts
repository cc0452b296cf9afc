// Runs a case with the package, with the kernel set that it was loaded with.
import type * as tensors from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type * as modules from '../../../src/nn/index.ts';
import type { Answer, Arg, Case, Input, Result, Step, Value } from './case.ts';

/** The package, loaded with one kernel set. */
export interface Package {
  readonly t: typeof tensors;
  readonly nn: typeof modules;
}

const special: Readonly<Record<string, number | undefined>> = {
  undefined: undefined,
  nan: Number.NaN,
  inf: Infinity,
  '-inf': -Infinity,
  '-0': -0,
};

function numberOf(value: number | string): number | bigint {
  if (typeof value === 'number') return value;
  return value in special ? special[value]! : BigInt(value);
}

function viewed(leaf: Tensor, views: Input['views']): Tensor {
  let x = leaf;
  for (const [name, ...args] of views) {
    if (name === 'slice') {
      const [dim, ...range] = args as [number, number, number, number];
      x = x.at(...Array.from({ length: dim }, () => ':' as const), range as [number, number, number]);
    } else x = (x as unknown as Record<string, (...args: unknown[]) => Tensor>)[name]!(...args);
  }
  return x;
}

/** One run of a case: the tensors that arguments refer to, and the leaves whose gradients are compared. */
class Run {
  readonly #package: Package;
  readonly #case: Case;
  readonly #leaves: Tensor[] = [];
  readonly #values: unknown[] = [];
  /** Tensors that modules hold, which no scope disposes. */
  readonly #kept: Tensor[] = [];
  readonly outs: unknown[] = [];
  /** Second gradients, which gradients() computes for some cases. */
  seconds: readonly (Tensor | null)[] | null = null;
  secondRaises: string | null = null;

  constructor(from: Package, one: Case) {
    this.#package = from;
    this.#case = one;
  }

  /** Runs the steps. The results are those of the last step; an in-place step adds the whole leaf of input 0. */
  execute(): void {
    const { t } = this.#package;
    for (const { dtype, shape, values, grad } of this.#case.inputs) {
      const leaf = t.tensor(values.map(numberOf), { dtype, shape });
      leaf.requiresGrad = grad;
      this.#leaves.push(leaf);
    }
    for (const [i, { views }] of this.#case.inputs.entries())
      this.#values.push(viewed(this.#leaves[i]!, views));
    for (const step of this.#case.steps) {
      const found = step.via === 'module' ? this.#module(step) : this.#call(step);
      this.#values.push(found[0]);
      this.outs.splice(0, Infinity, ...listed(found));
    }
  }

  #arg(arg: Arg): unknown {
    if (arg === null || typeof arg !== 'object') return arg;
    if (Array.isArray(arg)) return arg.map((item) => this.#arg(item));
    if ('$' in arg) return typeof arg.$ === 'number' ? this.#values[arg.$] : special[arg.$ as string];
    return Object.fromEntries(Object.entries(arg).map(([name, item]) => [name, this.#arg(item as Arg)]));
  }

  #call({ op, via, args, inPlace }: Step): unknown[] {
    const own = args.map((arg) => this.#arg(arg));
    const call = (): unknown => {
      if (via === 'method') {
        const [self, ...rest] = own as [Record<string, (...args: unknown[]) => unknown>, ...unknown[]];
        return self[op]!(...rest);
      }
      const path = op.split('.');
      const holder = path
        .slice(0, -1)
        .reduce<object>(
          (at, name) => at[name as keyof object],
          path[0] === 'nn' ? this.#package : this.#package.t,
        );
      return (holder as Record<string, (...args: unknown[]) => unknown>)[path.at(-1)!]!(...own);
    };
    // Running statistics are results, too.
    if (op === 'batchNorm' || op === 'instanceNorm')
      return [call(), ...own.slice(1, 3).filter((arg) => arg !== null)];
    if (!inPlace) return results(call());
    return [...results(this.#package.t.noGrad(call)), this.#leaves[0]];
  }

  #module({ op, new: own, state, args, training }: Step): unknown[] {
    const { t, nn } = this.#package;
    const make = (name: string, given: readonly unknown[]): modules.Module => {
      const Class = nn[name as keyof typeof nn] as unknown as new (
        ...args: readonly unknown[]
      ) => modules.Module;
      return new Class(...given);
    };
    const given = own!.map((arg) => this.#arg(arg));
    const name = op.slice('nn.'.length);
    const layers = (): modules.Module[] =>
      (given as [string, ...unknown[]][]).map(([layer, ...rest]) => make(layer, rest));
    /** An encoder or a decoder, of the arguments of its layers, their number, and the width of a normalisation. */
    const stack = (): modules.Module => {
      const [inner, count, width] = given as [unknown[], number, number | undefined];
      const layer = make(`${name}Layer`, inner);
      this.#kept.push(...layer.parameters());
      return make(name, [layer, count, width === undefined ? {} : { norm: new nn.LayerNorm(width) }]);
    };
    const isStack = name === 'TransformerEncoder' || name === 'TransformerDecoder';
    const module = name === 'Sequential' ? make(name, layers()) : isStack ? stack() : make(name, given);
    this.#kept.push(...module.parameters(), ...module.buffers());
    const holds = module.stateDict();
    for (const [key, ref] of Object.entries(state!)) {
      const at = ref.$ as number;
      t.noGrad(() => holds[key]!.copy_(this.#leaves[at]!));
      this.#leaves[at] = holds[key]!;
    }
    module.train(training!);
    const forward = (module as unknown as { forward: (...args: unknown[]) => unknown }).forward.bind(module);
    const outs = results(forward(...args.map((arg) => this.#arg(arg))));
    const buffers = module.namedBuffers().filter(([key]) => key in state!);
    return [...outs, ...buffers.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, buffer]) => buffer)];
  }

  /** Tells whether second gradients are compared; the same rule stands in oracle.py. */
  #hasSeconds(wanted: readonly Tensor[]): boolean {
    const isWide = wanted.every(({ dtype }) => dtype === 'float32' || dtype === 'float64');
    const areFinite = this.#case.inputs.every(({ values }) =>
      values.every((value) => typeof value === 'number'),
    );
    return isWide && areFinite && this.#case.compares === 'all' && this.#case.unsteady === undefined;
  }

  /** Computes the gradients of a weighted sum of the gradients. */
  #addSeconds(roots: readonly Tensor[], wanted: readonly Tensor[], weights: readonly Tensor[]): void {
    const { t } = this.#package;
    const options = { gradOutputs: weights, allowUnused: true, createGraph: true } as const;
    let grads: (Tensor | null)[];
    try {
      grads = t.grad(roots, wanted, options);
    } catch (error) {
      if (!(error instanceof t.TensorError) || !error.message.includes('createGraph needs')) throw error;
      this.secondRaises = error.message;
      return;
    }
    const again = grads.filter((x) => x?.requiresGrad) as Tensor[];
    const gradOutputs = again.map((grad) => this.#weights(grad));
    // Ordinary gradients of the same graph follow.
    const second = { gradOutputs, allowUnused: true, retainGraph: true } as const;
    this.seconds = again.length === 0 ? wanted.map(() => null) : t.grad(again, wanted, second);
  }

  /** Returns the weights of a result, which are those of oracle.py. */
  #weights({ dtype, shape, count }: Tensor): Tensor {
    const values = Float64Array.from({ length: count }, (_, i) => (((i * 7 + 3) % 12) - 5.5) / 4);
    return this.#package.t.tensor(values, { dtype, shape });
  }

  /** Disposes the tensors that no scope disposes. */
  dispose(): void {
    for (const tensor of this.#kept) tensor.dispose();
  }

  /**
   * Returns the gradients of a weighted sum of all results, for each input that requires one. Some cases use grad(),
   * the others backward().
   */
  gradients(): (Tensor | null)[] {
    const { t } = this.#package;
    const wanted = this.#case.inputs.flatMap(({ grad }, i) => (grad ? [this.#leaves[i]!] : []));
    const isTensor = (x: unknown): x is Tensor => x instanceof t.Tensor;
    const roots = this.outs.filter(isTensor).filter((x) => x.requiresGrad);
    if (roots.length === 0) return wanted.map(() => null);
    const weights = roots.map((root) => this.#weights(root));
    if (this.#hasSeconds(wanted)) this.#addSeconds(roots, wanted, weights);
    if (wanted.length % 2 === 0) return t.grad(roots, wanted, { gradOutputs: weights, allowUnused: true });
    for (const [i, root] of roots.entries()) root.backward(weights[i]!, { retainGraph: true });
    return wanted.map(({ grad }) => grad);
  }
}

/** Returns the results of a call: nested lists as one list, without nulls, and of packed sequences their data. */
function listed(found: unknown): unknown[] {
  if (Array.isArray(found)) return found.flatMap((item) => (item === null ? [] : listed(item)));
  if (typeof found === 'object' && found !== null && 'batchSizes' in found && 'data' in found)
    return [found.data];
  if (typeof found === 'object' && found !== null && 'values' in found && 'indices' in found)
    return [found.values, found.indices];
  if (typeof found === 'object' && found !== null && Object.getPrototypeOf(found) === Object.prototype)
    return listed(Object.values(found));
  return [found];
}

/** Returns the results of a call as they are: the items of a list, or one. */
function results(found: unknown): unknown[] {
  return Array.isArray(found) ? found : [found];
}

function readOut(found: Tensor): Value {
  const isHalf = found.dtype === 'float16' || found.dtype === 'bfloat16';
  const own = found.detach();
  const elements = (isHalf ? own.to('float32') : own).contiguous().dataSync().slice();
  return { dtype: found.dtype, shape: found.shape, elements };
}

function resultOf(t: typeof tensors, found: unknown): Result {
  if (found instanceof t.Tensor) return readOut(found);
  if (typeof found === 'string') return found;
  return { dtype: 'float64', shape: [], elements: Float64Array.of(Number(found)) };
}

const none = { outs: [], grads: [], error: 0 };

/** Tells a refusal, which is an error of the package, from a crash, which is anything else that is thrown. */
function refusal(t: typeof tensors, error: unknown): { raises: string } | { crash: string } {
  const { message = String(error), stack } = error as Partial<Error>;
  return error instanceof t.TensorError && !/bug/i.test(message)
    ? { raises: message }
    : { crash: stack ?? message };
}

function attempted(t: typeof tensors, run: Run): Answer {
  try {
    run.execute();
  } catch (error) {
    return { ...none, ...refusal(t, error) };
  }
  const outs = run.outs.map((found) => resultOf(t, found));
  try {
    const grads = run.gradients().map((grad) => grad && readOut(grad));
    const seconds = run.seconds?.map((second) => second && readOut(second));
    const secondRaises = run.secondRaises === null ? {} : { secondRaises: run.secondRaises };
    return { ...none, outs, grads, ...(seconds && { seconds }), ...secondRaises };
  } catch (error) {
    const found = refusal(t, error);
    return 'crash' in found ? { ...none, ...found } : { ...none, outs, gradRaises: found.raises };
  }
}

/** Returns the answer of the package. Memory that leaks counts as a crash. */
export function answerOf(from: Package, one: Case): Answer {
  const { t } = from;
  const before = t.memory().bytes;
  const run = new Run(from, one);
  const answer = t.scope(() => attempted(t, run));
  run.dispose();
  const left = t.memory().bytes - before;
  return left === 0 ? answer : { ...none, crash: answer.crash ?? `${left} bytes of memory were left` };
}
