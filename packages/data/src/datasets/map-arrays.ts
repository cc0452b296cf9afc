import { isTypedArray, type TypedArray } from '../typed-array.ts';

/**
 * Returns the batch with each typed array replaced by the result of `map`, in lists and plain objects of any depth. All
 * other values are unchanged.
 */
export function mapArrays(batch: unknown, map: (array: TypedArray) => TypedArray): unknown {
  const visit = (value: unknown): unknown => {
    if (isTypedArray(value)) return map(value);
    if (Array.isArray(value)) return value.map(visit);
    if (typeof value !== 'object' || value === null) return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visit(item)]));
  };
  return visit(batch);
}
