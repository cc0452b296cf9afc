export type { Backend, Operation, ReduceOp, Running, Settle, Supports, Verb } from './backend.ts';
export { loopback, loopbackGroups } from './backends/loopback.ts';
export {
  allocHost,
  asBuffer,
  type BufferCarrier,
  type BufferLike,
  type BufferView,
  bufferSymbol,
  type Device,
  type DeviceKind,
  elementsOf,
  type TypedArray,
  type TypedBuffer,
} from './buffer.ts';
export { byteSize, type DType, dtypes } from './dtype.ts';
export { detectLauncher, type Launched } from './env.ts';
export {
  aborted,
  type CollectiveCode,
  CollectiveError,
  type Failure,
  mismatch,
  peerLost,
  type Site,
  systemFailure,
  timedOut,
} from './errors.ts';
export {
  type Allocated,
  type BroadcastOptions,
  type CallOptions,
  Group,
  type GroupOptions,
  type ReduceOptions,
} from './group.ts';
export { init } from './init.ts';
export type { InitOptions } from './init-plan.ts';
export { isReducible, reduceOps } from './reduce-ops.ts';
export { type BackendContext, type BackendFactory, registerBackend } from './registry.ts';
export { exchange } from './rendezvous.ts';
export { shapeOf, signatureOf } from './signature.ts';
export type { Work } from './work.ts';
