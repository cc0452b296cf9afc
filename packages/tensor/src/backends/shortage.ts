// Handles an allocation failure inside a kernel. The kernel sets cannot free memory themselves: core/memory, which is
// built on them, does it.

type Retry = (shortage: unknown, call: () => void) => void;

let retry: Retry = (shortage) => {
  throw shortage;
};

/** Sets the function that makes room and repeats a call of a kernel, or throws. */
export function onShortage(run: Retry): void {
  retry = run;
}

/** Makes room and repeats `call`, which has thrown `shortage` and changed nothing. Throws if there is too little. */
export const repeatWithRoom: Retry = (shortage, call) => retry(shortage, call);
