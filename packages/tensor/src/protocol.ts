// How tensors and modules offer themselves to other packages: by well-known symbols and by shape, so that neither
// side imports the other. The types repeat what @ringwise/collectives and @ringwise/ddp declare.
import type { DType, HostArray } from './dtype.ts';

// Declared globally, so that these keys and those of the other packages are one type although nobody imports them.
declare global {
  interface RingwiseSymbols {
    readonly buffer: unique symbol;
    readonly gradParams: unique symbol;
    readonly buffers: unique symbol;
  }
}

/** `[Symbol.for('ringwise.buffer')]()` returns the memory of its object. */
export const bufferSymbol: RingwiseSymbols['buffer'] = Symbol.for('ringwise.buffer') as never;
/** `[Symbol.for('ringwise.gradParams')]()` returns the trainable parameters of its object. */
export const gradParamsSymbol: RingwiseSymbols['gradParams'] = Symbol.for('ringwise.gradParams') as never;
/** `[Symbol.for('ringwise.buffers')]()` returns the memory that its object saves but does not train. */
export const buffersSymbol: RingwiseSymbols['buffers'] = Symbol.for('ringwise.buffers') as never;

/** A flat, contiguous piece of memory. */
export interface BufferView {
  readonly dtype: DType;
  /** Elements. */
  readonly count: number;
  readonly device: { readonly kind: 'cpu'; readonly index: number };
  readonly host: HostArray;
  readonly handle: null;
}

const cpu = { kind: 'cpu', index: 0 } as const;

export function bufferView(dtype: DType, host: HostArray): BufferView {
  return { dtype, count: host.length, device: cpu, host, handle: null };
}

/** One trainable parameter, as distributed training sees it. */
export interface GradParam {
  readonly name: string;
  readonly shape: readonly number[];
  readonly value: BufferView;
  readonly grad: BufferView | null;
  readonly onGradReady: (ready: () => void) => () => void;
  readonly bindGrad: (bucket: { readonly host: ArrayBufferView | null }) => void;
  readonly dropGrad: () => void;
  readonly onBackwardEnd: (done: () => void) => () => void;
}
