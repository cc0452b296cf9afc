// The context of the running code: the scope that owns new tensors, and whether operations are recorded on
// the tape. It follows asynchronous functions across `await` (AsyncLocalStorage), so that overlapping tasks
// do not affect each other. While no scope, noGrad, autocast or the like is active, AsyncLocalStorage is not read.
import { AsyncLocalStorage } from 'node:async_hooks';
import { checkOptions, optionChecks } from '../checks/options.ts';
import { aFunction, aTensor, checkValue, flag, oneOf } from '../checks/value-checks.ts';

/** The part of a tensor that scopes use. */
export interface Tracked {
  isKept: boolean;
  dispose(): void;
}

interface Scope {
  readonly parent: Scope | null;
  /** Null once the scope has ended. A task that outlives it adds its tensors to the nearest outer one. */
  tensors: Tracked[] | null;
}

interface Context {
  readonly scope: Scope | null;
  readonly gradEnabled: boolean;
  readonly detectsAnomaly: boolean;
  readonly autocast: AutocastDType | null;
  /** Numbers of the selected streams, by the index of their CUDA device; null if none was selected. */
  readonly streams: readonly number[] | null;
}

/** The dtypes in which autocast() computes matrix products. */
export type AutocastDType = 'float16' | 'bfloat16';

const outside: Context = {
  scope: null,
  gradEnabled: true,
  detectsAnomaly: false,
  autocast: null,
  streams: null,
};
const contexts = new AsyncLocalStorage<Context>();
let activeContexts = 0;

/**
 * The context of the synchronous code that is running. Null in code that an await has resumed: there, the context is
 * read from AsyncLocalStorage.
 */
let entered: Context | null = null;

const current = (): Context => (activeContexts === 0 ? outside : (entered ?? contexts.getStore() ?? outside));

/** Returns whether operations are recorded on the tape. */
export const isGradEnabled = (): boolean => current().gradEnabled;

/** Returns whether recorded operations are checked for NaN and infinities; see detectAnomaly(). */
export const isDetectingAnomaly = (): boolean => current().detectsAnomaly;

/** Returns the dtype of matrix products under autocast, or null if autocast is off. */
export const autocastDtype = (): AutocastDType | null => current().autocast;

function openScope(): Scope | null {
  let scope = current().scope;
  while (scope !== null && scope.tensors === null) scope = scope.parent;
  return scope;
}

/** Adds a new tensor to the innermost open scope, if there is one. */
export function track(tensor: Tracked): void {
  if (activeContexts !== 0) openScope()?.tensors?.push(tensor);
}

/**
 * Runs `fn` in a context. Calls `end` with its result when it has returned, or when its promise has settled.
 */
function within<T>(context: Context, fn: () => T, end: (result: unknown) => void): T {
  activeContexts++;
  const leave = (result: unknown): void => {
    activeContexts--;
    end(result);
  };
  const before = entered;
  entered = context;
  let result: T;
  try {
    result = contexts.run(context, fn);
  } catch (error) {
    entered = before;
    leave(undefined);
    throw error;
  }
  entered = before;
  if (!(result instanceof Promise)) {
    leave(result);
    return result;
  }
  const settled = result.then(
    (value: unknown) => {
      leave(value);
      return value;
    },
    (error: unknown) => {
      leave(undefined);
      throw error;
    },
  );
  return settled as T;
}

/**
 * Runs `fn` and disposes every tensor that was created inside, except those that it returns (also inside
 * arrays, maps, sets and plain objects) and those marked by `keep`. `fn` may be async: the scope then ends with its
 * promise. Scopes can be nested; a returned tensor belongs to the outer scope. Parameters, their gradients
 * and optimizer state are never disposed.
 *
 * @example
 * ```ts
 * const value = scope(() => x.mul(2).sum().item()); // both intermediate tensors are disposed
 * ```
 */
export function scope<T>(fn: () => T): T {
  checkValue('scope', fn, aFunction);
  const parent = openScope();
  const own: Scope = { parent, tensors: [] };
  return within({ ...current(), scope: own }, fn, (result) => {
    const created = own.tensors!;
    own.tensors = null;
    const returned = new Set<unknown>();
    collectTensors(result, returned);
    for (const tensor of created) {
      if (tensor.isKept) continue;
      if (!returned.has(tensor)) tensor.dispose();
      else parent?.tensors?.push(tensor);
    }
  });
}

const withSetting = <T>(setting: Partial<Context>, fn: () => T): T =>
  within({ ...current(), ...setting }, fn, () => {});

/** Runs `fn` without recording operations on the tape, also across the awaits of an async `fn`. */
export function noGrad<T>(fn: () => T): T {
  checkValue('noGrad', fn, aFunction);
  return withSetting({ gradEnabled: false }, fn);
}

/** Runs `fn` with operations recorded again, inside noGrad(). */
export function enableGrad<T>(fn: () => T): T {
  checkValue('enableGrad', fn, aFunction);
  return withSetting({ gradEnabled: true }, fn);
}

/**
 * Runs `fn`, which contains forward and backward. Throws ERR_TENSOR_ANOMALY for the first recorded operation whose
 * result has a NaN or +∞, or which sends a gradient that is not finite. The error names the operation and its call
 * site. Slow: each result and each gradient is read twice, and on a device the host waits for it.
 */
export function detectAnomaly<T>(fn: () => T): T {
  checkValue('detectAnomaly', fn, aFunction);
  return withSetting({ detectsAnomaly: true }, fn);
}

/** Options of autocast(). */
export interface AutocastOptions {
  /** The dtype of 16 bits to convert to. Default bfloat16. float16 needs a GradScaler. */
  readonly dtype?: AutocastDType;
  /** False disables autocast inside another autocast. Default true. */
  readonly enabled?: boolean;
}

const autocastOptions = optionChecks<AutocastOptions>({
  dtype: oneOf('float16', 'bfloat16'),
  enabled: flag,
});

/**
 * Runs `fn`, the forward pass, in mixed precision. Matrix products, linear and recurrent layers, convolutions,
 * attention and prelu convert float32 to 16 bits; exp, log, pow, rsqrt, softmax, softplus, layer and RMS norm, vector
 * norms, distances, sums, products and losses convert 16 bits to float32; dot, cross, gridSample and scatterAdd convert
 * to float32 if an operand has it; other operations use the given dtypes. float64 and integers are not converted.
 * Parameters and their gradients stay float32. Run backward and the optimizer outside.
 */
export function autocast<T>(options: AutocastOptions, fn: () => T): T {
  checkValue('autocast: options', options, {
    expected: 'an object, which may be empty',
    fits: (value) => value !== undefined,
  });
  checkOptions('autocast', options, autocastOptions);
  checkValue('autocast: the second argument', fn, aFunction);
  const { dtype = 'bfloat16', enabled = true } = options;
  return withSetting({ autocast: enabled ? dtype : null }, fn);
}

/** Runs `fn` as autocast({ enabled: false }) does. @internal */
export const withoutAutocast = <T>(fn: () => T): T => withSetting({ autocast: null }, fn);

/** Runs `fn` with these streams; see withStream(). @internal */
export const withStreams = <T>(streams: readonly number[], fn: () => T): T => withSetting({ streams }, fn);
export const chosenStreams = (): readonly number[] | null => current().streams;

/** Returns a function that runs other functions with the autocast setting of now. @internal */
export function keepingAutocast(): <T>(fn: () => T) => T {
  const setting = { autocast: autocastDtype() };
  return (fn) => withSetting(setting, fn);
}

/**
 * Excludes a tensor from disposal by scopes and backward: it lives until dispose() or garbage collection.
 * Returns it.
 */
export function keep<T extends Tracked>(tensor: T): T {
  checkValue('keep', tensor, aTensor);
  tensor.isKept = true;
  return tensor;
}

/**
 * Adds `value`, if it is an object, and all objects inside its arrays, maps, sets and plain objects to `found`.
 * @internal
 */
export function collectTensors(value: unknown, found: Set<unknown>): void {
  if (typeof value !== 'object' || value === null || found.has(value)) return;
  found.add(value);
  const isPlain = Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null;
  const isList = value instanceof Map || value instanceof Set;
  if (isList) for (const member of value.values()) collectTensors(member, found);
  else if (Array.isArray(value) || isPlain)
    for (const member of Object.values(value)) collectTensors(member, found);
}
