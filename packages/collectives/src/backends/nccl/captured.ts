// Operations of the nccl backend in captured steps. What belongs to a step is compared once, when it is captured; a run by its
// place in the sequence and by what it contains, beside the device's work, as an operation is. Ahead of a step's first run all
// comparisons have ended, so that ranks which have captured different steps are told so before a device waits for another.
import type { CapturedOperation, Operation, Run, Settle, StepCaptures } from '../../backend.ts';
import type { CollectiveError } from '../../errors.ts';
import { signatureOf } from '../../group/signature.ts';
import type { Agreement } from '../agreement/agreement.ts';
import type { Decide } from '../agreement/comparison.ts';
import type { NativeNcclGroup } from '../native.ts';
import type { Lane } from '../native-lane.ts';

/** What of the backend it works with. */
export interface Parts {
  readonly lane: Lane;
  readonly agreement: Agreement;
  /** Whether the ranks agree before the device does anything. */
  readonly checksAhead: boolean;
  /** The group on the operation's device, which the ranks are connected to. */
  readonly open: (operation: Operation) => NativeNcclGroup;
  /** The same, once it is open. */
  readonly native: () => NativeNcclGroup;
  /** NCCL takes what a call with several operations starts from now on as one group. */
  readonly hold: () => void;
  /** Tells the other ranks of what only this one knows, and a settle or a caller the first cause. */
  readonly told: (error: CollectiveError) => CollectiveError;
  readonly telling: (settle: Settle) => Settle;
  /** Ends the native group by what the ranks disagree about. */
  readonly failIf: Decide;
}

export function capturedOnNccl({
  lane,
  agreement,
  checksAhead,
  open,
  native,
  hold,
  told,
  telling,
  failIf,
}: Parts): StepCaptures {
  const compare = (verb: string, seq: number, timeoutMs: number, signature: string) => {
    agreement.catchUp();
    return agreement.ask({ verb, seq, timeoutMs, signatures: [signature] }, failIf);
  };
  const add = (operation: Operation, step: number, settle: Settle): CapturedOperation => {
    const group = open(operation);
    const { verb, seq, timeoutMs } = operation;
    // NCCL may have to connect the ranks for it, which blocks this thread: it would not hear that they disagree.
    compare(verb, seq, timeoutMs, `${signatureOf(operation)} in captured step ${step}`).wait();
    hold(); // not before: whoever waits for a comparison may be given earlier operations
    const id = lane.hand(operation, group.capture.bind(group), telling(settle));
    return { join: () => group.join(id), forget: () => group.forget(id) };
  };
  const run = ({ seq, timeoutMs, contents, isFirst, stream }: Run, settle: Settle): (() => void) => {
    const verb = 'capturedStep';
    const comparing = compare(verb, seq, timeoutMs, `run of ${contents}`);
    if (checksAhead) comparing.wait();
    if (isFirst) agreement.decideAll();
    const failure = native().beginRun(stream);
    if (failure !== null) throw told(lane.errorOf(failure, { verb, seq }));
    return () => lane.expect(native().endRun(stream, timeoutMs), { verb, seq }, telling(settle));
  };
  return { add, run };
}
