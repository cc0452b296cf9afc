// Adds operations to the class of tensors as methods.
import { Tensor } from '../../core/tensor.ts';

/** The functions that implement the methods of an interface: the tensor is their first argument. */
export type FunctionsOf<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (...args: infer Rest) => infer Result
    ? (a: Tensor, ...rest: Rest) => Result
    : never;
};

/** Adds methods to Tensor. They are not enumerable, like the methods of a class. */
export function addMethods(methods: object): void {
  for (const [name, value] of Object.entries(methods))
    Object.defineProperty(Tensor.prototype, name, { value, writable: true, configurable: true });
}

/**
 * Adds functions of a tensor to Tensor as methods. A method that is called in each step of a training loop is in
 * basic.ts instead, because it passes its arguments on without an array.
 */
export function addFunctions<Methods>(functions: FunctionsOf<Methods>): void {
  const all = Object.entries(functions as Record<string, (a: Tensor, ...rest: unknown[]) => unknown>);
  addMethods(
    Object.fromEntries(
      all.map(([name, fn]) => [
        name,
        function (this: Tensor, ...rest: unknown[]) {
          return fn(this, ...rest);
        },
      ]),
    ),
  );
}
