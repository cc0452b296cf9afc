// Calls of a plain training loop that the job makes by itself. In the function of run() they would drop the gradients
// of this rank's earlier micro-batches, or update the parameters by gradients that are not averaged, without an error.
import { calledInStep } from '../errors.ts';

interface Refused {
  /** Name of the object in the error. */
  readonly what: string;
  readonly object: object;
  readonly names: readonly string[];
}

/** Runs `work`, during which these methods throw ERR_ELASTIC_STEP. */
export async function refusing<T>(refused: readonly Refused[], work: () => Promise<T>): Promise<T> {
  const restores: (() => void)[] = [];
  for (const { what, object, names } of refused)
    for (const name of names) {
      if (typeof (object as Record<string, unknown>)[name] !== 'function') continue;
      const own = Object.getOwnPropertyDescriptor(object, name);
      const value = (): never => {
        throw calledInStep(`${what}.${name}()`);
      };
      const isReplaced = Reflect.defineProperty(object, name, { value, writable: true, configurable: true });
      if (!isReplaced) continue; // the object is frozen
      restores.push(() => {
        if (own === undefined) Reflect.deleteProperty(object, name);
        else Object.defineProperty(object, name, own);
      });
    }
  try {
    return await work();
  } finally {
    for (const restore of restores) restore();
  }
}
