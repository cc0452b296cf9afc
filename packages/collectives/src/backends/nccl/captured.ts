// Operations of the nccl backend in captured steps. Ranks compare an operation of a step once, when it is
// captured. They compare each launch of a step by its sequence number and contents, while the device works,
// as they do for an ordinary operation. All comparisons end before the first launch of a step, so that ranks
// that captured different steps report the mismatch instead of waiting for each other on the device.
import type { CapturedOperation, Operation, Run, Settle, StepCaptures } from '../../backend.ts';
import type { CollectiveError } from '../../errors.ts';
import { signatureOf } from '../../group/signature.ts';
import type { Agreement } from '../agreement/agreement.ts';
import type { Decide } from '../agreement/comparison.ts';
import type { NativeNcclGroup } from '../native.ts';
import type { Lane } from '../native-lane.ts';

/** The members of the backend that captures use. */
export interface Parts {
  readonly lane: Lane;
  readonly agreement: Agreement;
  /** Whether the ranks agree before the device does anything. */
  readonly checksAhead: boolean;
  /** The group on the operation's device. Opens the device and blocks until the ranks are connected. */
  readonly open: (operation: Operation) => NativeNcclGroup;
  /** The same group, once `open` has been called. */
  readonly native: () => NativeNcclGroup;
  /** Makes NCCL batch the operations that the current call starts from now on. */
  readonly hold: () => void;
  /**
   * `rootCauseOf` reports an error that only this rank knows to the other ranks and returns the root cause;
   * `withRootCause` wraps a `settle` so that it gets the root cause.
   */
  readonly rootCauseOf: (error: CollectiveError) => CollectiveError;
  readonly withRootCause: (settle: Settle) => Settle;
  /** Fails the native group if the ranks disagree. */
  readonly failIf: Decide;
}

export function capturedOnNccl({
  lane,
  agreement,
  checksAhead,
  open,
  native,
  hold,
  rootCauseOf,
  withRootCause,
  failIf,
}: Parts): StepCaptures {
  const compare = (verb: string, seq: number, timeoutMs: number, signature: string) => {
    agreement.catchUp();
    return agreement.ask({ verb, seq, timeoutMs, signatures: [signature] }, failIf);
  };
  const add = (operation: Operation, step: number, settle: Settle): CapturedOperation => {
    const group = open(operation);
    const { verb, seq, timeoutMs } = operation;
    // NCCL may have to connect the ranks here, which blocks this thread, so that it would never see a
    // mismatch.
    compare(verb, seq, timeoutMs, `${signatureOf(operation)} in captured step ${step}`).wait();
    hold(); // after the wait: settling during the wait may start earlier operations
    const id = lane.hand(operation, group.capture.bind(group), withRootCause(settle));
    return { join: () => group.join(id), forget: () => group.forget(id) };
  };
  const run = ({ seq, timeoutMs, contents, isFirst, stream }: Run, settle: Settle): (() => void) => {
    const verb = 'capturedStep';
    const comparing = compare(verb, seq, timeoutMs, `run of ${contents}`);
    if (checksAhead) comparing.wait();
    if (isFirst) agreement.decideAll();
    const failure = native().beginRun(stream);
    if (failure !== null) throw rootCauseOf(lane.errorOf(failure, { verb, seq }));
    return () => lane.expect(native().endRun(stream, timeoutMs), { verb, seq }, withRootCause(settle));
  };
  return { add, run };
}
