// The test runner functions that the contract suite needs.

/** The part of vitest (or a look-alike) that the suite uses. */
export interface TestApi {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: {
    (name: string, body: () => Promise<void>): unknown;
    readonly skip: (name: string, body: () => Promise<void>) => unknown;
  };
  readonly expect: (actual: unknown) => { readonly toEqual: (expected: unknown) => void };
}
