export type { Backend, Operation, ReduceOp, Running, Settle, Supports, Verb, Wire } from './backend.ts';
export { bytesWritten } from './backends/execute.ts';
export { loopback, loopbackGroups } from './backends/loopback.ts';
export {
  allocHost,
  asBuffer,
  type BufferCarrier,
  type BufferLike,
  type BufferView,
  bufferSymbol,
  type Device,
  type DeviceHandle,
  type DeviceKind,
  elementsOf,
  type ReadOnly,
  type TypedArray,
  type TypedBuffer,
} from './buffer.ts';
export { captureNow, type StepCapture } from './captured.ts';
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
export type { FlightEntry } from './flight-recorder.ts';
export { type Allocated, Group, type GroupOptions } from './group.ts';
export { init } from './init.ts';
export type { InitOptions } from './init-plan.ts';
export { type JoinNcclOptions, joinNccl } from './join-nccl.ts';
export {
  fromBfloat16,
  fromFloat16,
  isNarrowFloat,
  type NarrowFloat,
  narrowFloats,
  toBfloat16,
  toFloat16,
} from './narrow-floats.ts';
export {
  type AllReduceOptions,
  type AllToAllOptions,
  anySource,
  type Buffers,
  type CallOptions,
  type CollectiveOptions,
  type CountsOptions,
  type Message,
  type MessageOptions,
  type Received,
  type ReduceOptions,
  type RootOptions,
  type ShrinkOptions,
  type Source,
  type SubgroupOptions,
} from './options.ts';
export type { Placement } from './placement.ts';
export { isReducible, reduceOps } from './reduce-ops.ts';
export { type BackendContext, type BackendFactory, registerBackend } from './registry.ts';
export { exchange } from './rendezvous.ts';
export { shapeOf, signatureOf } from './signature.ts';
export type { Connected, SubgroupRequest, Subgroups } from './subgroups.ts';
export type { Survivors } from './survivors.ts';
export type { Work } from './work.ts';
