// L-BFGS (Liu and Nocedal, 1989), with the numbers of torch.optim.LBFGS.

import { checkOptions, optionChecks } from '../../checks/options.ts';
import {
  atLeastOne,
  type Check,
  checkValue,
  finite,
  nonNegative,
  nonNegativeInteger,
} from '../../checks/value-checks.ts';
import { keep, scope } from '../../core/context.ts';
import { tensor, zeros } from '../../core/creation.ts';
import type { Tensor } from '../../core/tensor.ts';
import { refuseWhileCapturing } from '../../device/capture.ts';
import { badOptimizerParam, badOption, badStateDict } from '../../errors.ts';
import { cat, stack } from '../../ops/index.ts';
import { type AllOptions, checkAll, gradOf, Optimizer, type OptimizerParams } from '../optimizer.ts';
import { checkIsState, type OptimizerState } from '../state.ts';
import { dot, History } from './history.ts';
import { LineSearch, type Point } from './line-search.ts';

/** Options of LBFGS. */
export interface LBFGSOptions {
  /** Length of a step, as a multiple of the direction; with a line search, of its first trial. Default 1. */
  readonly lr?: number;
  /** Maximum number of iterations in one call of step(). Default 20. */
  readonly maxIter?: number;
  /** Maximum number of evaluations of the function in one call of step(). Default maxIter × 1.25. */
  readonly maxEval?: number | null;
  /** Ends when no gradient is larger than this. Default 1e-7. */
  readonly toleranceGrad?: number;
  /** Ends when neither a parameter nor the loss changes by more than this. Default 1e-9. */
  readonly toleranceChange?: number;
  /** Number of earlier iterations that it remembers. Default 100. */
  readonly historySize?: number;
  /** How the length of each step is found; null makes it `lr`. Default null. */
  readonly lineSearchFn?: 'strong_wolfe' | null;
}

type Options = AllOptions<LBFGSOptions>;
const defaults: Options = {
  ...{ lr: 1, maxIter: 20, maxEval: null, toleranceGrad: 1e-7, toleranceChange: 1e-9, historySize: 100 },
  lineSearchFn: null,
};
const checks = {
  ...{ lr: nonNegative, maxIter: atLeastOne, toleranceGrad: finite, toleranceChange: finite },
  historySize: atLeastOne,
  maxEval: {
    expected: 'an integer ≥ 0, or null',
    fits: (value: unknown) => value === null || nonNegativeInteger.fits(value),
  } satisfies Check,
  lineSearchFn: {
    expected: "'strong_wolfe' or null",
    fits: (value: unknown) => value === null || value === 'strong_wolfe',
  } satisfies Check,
};
const lbfgsOptions = optionChecks<LBFGSOptions>(checks);

/** Fills in maxEval, which depends on maxIter. */
function completedOptions(options: LBFGSOptions): LBFGSOptions {
  checkOptions('LBFGS', options, lbfgsOptions);
  return { ...options, maxEval: options.maxEval ?? Math.floor((options.maxIter ?? 20) * 1.25) };
}

const largest = (values: Tensor): number => scope(() => values.abs().max().item());

/**
 * L-BFGS, a quasi-Newton method for functions that are the same in each evaluation. step() takes a function that drops
 * the gradients, computes the loss, calls backward on it, and returns it; step() calls it several times. All parameters
 * must be in one group, of one dtype and on one device. Needs memory for 2 × historySize + 3 copies of the parameters.
 */
export class LBFGS extends Optimizer<Options> {
  readonly #history = new History();
  #iterations = 0;
  #t = 0;
  #direction: Tensor | null = null;
  #previousGrad: Tensor | null = null;

  constructor(params: OptimizerParams<Options>, options: LBFGSOptions = {}) {
    super(params, defaults, completedOptions(options));
    this.#checkGroups();
  }

  #checkGroups(): void {
    if (this.groups.length !== 1)
      throw badOption('LBFGS: params', 'one group of parameters', `${this.groups.length}`);
  }

  protected check(options: Options): void {
    checkAll(options, checks);
  }

  protected remembers(): readonly string[] {
    return [];
  }

  /** Returns the loss that the first call of `closure` computed. */
  step(closure?: () => Tensor): Tensor {
    refuseWhileCapturing('the step of LBFGS');
    checkValue('LBFGS: step', closure, {
      expected: 'a function that computes the loss, calls backward and returns the loss',
      fits: (value) => typeof value === 'function',
    });
    this.checkNumbers();
    this.#checkGroups();
    this.#checkParams();
    return scope(() => this.#run(closure!));
  }

  #checkParams(): void {
    const [{ dtype, device }] = this.params as [Tensor];
    for (const param of this.params) {
      const isFloat = param.dtype === 'float32' || param.dtype === 'float64';
      if (!isFloat || !param.isContiguous)
        throw badOptimizerParam(param.shape, param.dtype, param.isContiguous);
      if (param.dtype !== dtype || param.device !== device) {
        const got = `${dtype} on ${device} and ${param.dtype} on ${param.device}`;
        throw badOption('LBFGS: params', 'parameters of one dtype on one device', got);
      }
    }
  }

  #run(closure: () => Tensor): Tensor {
    const group = this.groups[0]!;
    const { lr, maxIter, toleranceGrad, toleranceChange, historySize, lineSearchFn } = group;
    const maxEval = group.maxEval ?? Math.floor(maxIter * 1.25);
    this.#follow();
    const first = keep(closure());
    let loss = first.item();
    let evaluations = 1;
    let grad = this.#flatGrad();
    if (largest(grad) <= toleranceGrad) return first;

    for (let iteration = 1; iteration <= maxIter; iteration++) {
      this.#iterations++;
      const direction = this.#turn(grad, historySize);
      this.#t = this.#iterations === 1 ? Math.min(1, 1 / grad.abs().sum().item()) * lr : lr;
      const slope = dot(grad, direction);
      if (slope > -toleranceChange) break;

      const before = loss;
      let isLast = iteration === maxIter;
      if (lineSearchFn === null) {
        this.#move(this.#t, direction);
        if (!isLast) {
          loss = scope(() => closure().item());
          grad = this.#flatGrad();
          evaluations++;
        }
      } else {
        const evaluate = (t: number): Point => this.#pointAt(t, direction, closure);
        const search = new LineSearch({ t: 0, loss, grad, slope }, evaluate, maxEval - evaluations);
        const found = search.run(this.#t, largest(direction), toleranceChange);
        ({ loss, grad, t: this.#t } = found);
        this.#move(this.#t, direction);
        evaluations += search.evaluations;
      }
      isLast ||= evaluations >= maxEval || largest(grad) <= toleranceGrad;
      isLast ||= largest(direction) * this.#t <= toleranceChange;
      if (isLast || Math.abs(loss - before) < toleranceChange) break;
    }
    return first;
  }

  /** Converts the state if the parameters have another dtype or device now. */
  #follow(): void {
    const [{ dtype, device }] = this.params as [Tensor];
    const all = this.#history.changes.flatMap(({ step, gradient }) => [step, gradient]);
    for (const vector of [this.#direction, this.#previousGrad, ...all]) vector?.convert(dtype, device);
  }

  /** Returns the next direction, and remembers it and the gradient for the iteration after. */
  #turn(grad: Tensor, historySize: number): Tensor {
    const next = scope(() => {
      if (this.#iterations === 1 || this.#direction === null || this.#previousGrad === null)
        return grad.neg();
      this.#history.add(this.#direction.mul(this.#t), grad.sub(this.#previousGrad), historySize);
      return this.#history.directionAt(grad);
    });
    this.#direction?.dispose();
    this.#previousGrad?.dispose();
    this.#direction = keep(next);
    this.#previousGrad = keep(grad.clone());
    return next;
  }

  /** Returns all gradients as one vector; zeros for parameters without one. */
  #flatGrad(): Tensor {
    return cat(
      this.params.map((param) => {
        if (gradOf(param)) return param.grad!.detach().reshape([-1]);
        return zeros([param.count], { dtype: param.dtype as 'float32', device: param.device });
      }),
    );
  }

  /** Adds `t` times the direction to the parameters. */
  #move(t: number, direction: Tensor): void {
    scope(() => {
      let offset = 0;
      for (const param of this.params) {
        const part = direction.narrow(0, offset, param.count).reshape(param.shape);
        param.detach().add_(part.mul(t));
        offset += param.count;
      }
    });
  }

  /** Evaluates the function at a point on the line, and moves the parameters back, also if the function throws. */
  #pointAt(t: number, direction: Tensor, closure: () => Tensor): Point {
    const before = this.params.map((param) => param.detach().clone());
    try {
      this.#move(t, direction);
      const loss = scope(() => closure().item());
      const grad = this.#flatGrad();
      return { t, loss, grad, slope: dot(grad, direction) };
    } finally {
      for (const [i, param] of this.params.entries()) {
        param.detach().copy_(before[i]!);
        before[i]!.dispose();
      }
    }
  }

  /**
   * Returns the state that is needed to continue later. The tensors of all parameters are vectors over all of them,
   * stored under position 0; tensors of the history are copies.
   */
  override stateDict(): OptimizerState {
    const state = super.stateDict();
    const { changes, scale } = this.#history;
    const steps = state.steps.map((_, i) => (i === 0 ? this.#iterations : 0));
    if (this.#direction === null || this.#previousGrad === null) return { ...state, steps };
    const float64 = { dtype: 'float64' } as const;
    const tensors: Record<string, Tensor> = {
      'd.0': this.#direction,
      'prevFlatGrad.0': this.#previousGrad,
      't.0': tensor(this.#t, float64),
      'hDiag.0': tensor(scale, float64),
    };
    if (changes.length > 0) {
      tensors['oldDirs.0'] = stack(changes.map(({ gradient }) => gradient));
      tensors['oldStps.0'] = stack(changes.map(({ step }) => step));
      tensors['ro.0'] = tensor(
        changes.map(({ ro }) => ro),
        float64,
      );
    }
    return { ...state, steps, tensors };
  }

  /** Copies options and state tensors from `state`, which the caller keeps. Checks everything before it copies. */
  override loadStateDict(state: OptimizerState): void {
    checkIsState(state);
    const problems = this.#problemsOf(state);
    if (problems.length > 0) throw badStateDict(problems);
    super.loadStateDict({ ...state, steps: state.steps.map(() => 0), tensors: {} });
    const { tensors } = state;
    const { dtype, device } = this.params[0]!;
    const own = (values: Tensor): Tensor => keep(values.to(dtype).to(device).clone());
    this.#history.clear();
    this.#direction?.dispose();
    this.#previousGrad?.dispose();
    this.#iterations = state.steps[0] ?? 0;
    this.#direction = tensors['d.0'] ? own(tensors['d.0']) : null;
    this.#previousGrad = tensors['prevFlatGrad.0'] ? own(tensors['prevFlatGrad.0']) : null;
    this.#t = tensors['t.0']?.item() ?? 0;
    this.#history.scale = tensors['hDiag.0']?.item() ?? 1;
    const ros = (tensors['ro.0']?.toArray() ?? []) as number[];
    scope(() => {
      for (const [i, ro] of ros.entries()) {
        const step = own(tensors['oldStps.0']!.select(0, i));
        this.#history.changes.push({ step, gradient: own(tensors['oldDirs.0']!.select(0, i)), ro });
      }
    });
  }

  #problemsOf({ steps, tensors }: OptimizerState): string[] {
    const count = this.params.reduce((sum, param) => sum + param.count, 0);
    const changes = tensors['ro.0']?.count ?? 0;
    const shapes: Record<string, readonly number[]> = {
      ...{ 'd.0': [count], 'prevFlatGrad.0': [count], 't.0': [], 'hDiag.0': [] },
      ...{ 'oldDirs.0': [changes, count], 'oldStps.0': [changes, count], 'ro.0': [changes] },
    };
    const problems = Object.entries(tensors).flatMap(([name, { shape }]) => {
      const want = shapes[name];
      if (want === undefined) return [`unexpected ${name}`];
      return want.join() === shape.join()
        ? []
        : [`${name} expected [${want.join(', ')}], got [${shape.join(', ')}]`];
    });
    const needed =
      steps[0] === 0 ? [] : Object.keys(shapes).filter((name) => changes > 0 || !/old|ro/.test(name));
    const missing = needed.filter((name) => !(name in tensors));
    if (missing.length > 0) problems.push(`missing ${missing.join(', ')}`);
    return problems;
  }
}
