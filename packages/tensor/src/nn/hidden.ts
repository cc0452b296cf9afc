// Warns of parameters that a module does not find, because a field holds them in an object, a Map or a Set, or holds a
// tensor that was not made by parameter(). An optimiser would not get them, and the model would train without them.
import { Tensor } from '../core/tensor.ts';
import { hiddenParameter, plainTensor } from '../errors.ts';
import { isParameter } from './parameter.ts';

type Named<T> = readonly [name: string, value: T];

/** The classes whose fields have been searched, once each, and the modules whose parts have been. */
const searched = new WeakSet<object>();

/**
 * Searches the fields of `root` and of the modules inside it, all of which `modules` returns, and warns of parameters
 * that are not in `found`. `parametersOf` returns those of a value if it is a module. Does nothing if called again.
 */
export function warnOfHidden(
  root: object,
  modules: () => readonly object[],
  found: readonly Named<Tensor>[],
  parametersOf: (value: unknown) => readonly Tensor[],
): void {
  if (searched.has(root)) return;
  searched.add(root);
  const tensors = new Set(found.map(([, tensor]) => tensor));
  for (const module of modules()) {
    if (searched.has(module.constructor)) continue;
    searched.add(module.constructor);
    const warning = warningOf(module, (value) => {
      const params = isParameter(value) ? [value] : parametersOf(value);
      return params.some((param) => param.requiresGrad && !tensors.has(param));
    });
    if (warning !== null) process.emitWarning(warning, { code: 'RINGWISE_HIDDEN_PARAMETER' });
  }
}

function warningOf(module: object, isHidden: (value: unknown) => boolean): string | null {
  const type = module.constructor.name;
  for (const [field, value] of Object.entries(module)) {
    if (value instanceof Tensor && value.requiresGrad && value.isLeaf && !isParameter(value))
      return plainTensor(type, field);
    const [holder, items] = itemsOf(value);
    if (items.some(isHidden)) return hiddenParameter(type, field, holder);
  }
  return null;
}

/** Returns the values in an object, a Map or a Set, and what holds them. */
function itemsOf(value: unknown): [holder: string, items: readonly unknown[]] {
  if (value instanceof Map) return ['a Map', [...value.values()]];
  if (value instanceof Set) return ['a Set', [...value]];
  const isPlain = typeof value === 'object' && value !== null && value.constructor === Object;
  return ['an object', isPlain ? Object.values(value) : []];
}
