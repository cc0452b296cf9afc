// The public API of @ringwise/collectives.
export { Across, across } from './across/across.ts';
export { type Autograd, type Differentiable, differentiableSymbol } from './across/autograd.ts';
export type {
  AfterOptions,
  DifferentiableOp,
  DimOptions,
  ExchangeOptions,
  OpOptions,
  PartOptions,
  RootedOptions,
  TaggedOptions,
  Use,
} from './across/options.ts';
export type { Verb } from './all-verbs.ts';
export type { Backend, Operation, Running, Settle, Supports, Wire } from './backend.ts';
export { bytesWritten } from './backends/arithmetic/execute.ts';
export {
  fromBfloat16,
  fromFloat16,
  isNarrowFloat,
  type NarrowFloat,
  narrowFloats,
  toBfloat16,
  toFloat16,
} from './backends/arithmetic/narrow-floats.ts';
export type { BackendContext, BackendFactory } from './backends/context.ts';
export { hostId } from './backends/host-address.ts';
export { loopback, loopbackGroups } from './backends/loopback.ts';
export { joinNccl } from './backends/nccl/join.ts';
export { prepareMemory } from './backends/prepare-memory.ts';
export { registerBackend } from './backends/registry.ts';
export { byteSize, type DType, dtypes } from './dtype.ts';
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
export type { FlightEntry } from './flight/entry.ts';
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
} from './group/buffer.ts';
export { captureNow, outsideCapture, type StepCapture } from './group/captured.ts';
export { type Allocated, Group } from './group/group.ts';
export type { Connected, SubgroupRequest, Subgroups, Survivors } from './group/members/membership.ts';
export { overlap } from './group/overlap.ts';
export { shapeOf, signatureOf } from './group/signature.ts';
export type { Work } from './group/work.ts';
export { detectLauncher, type Launched } from './init/env.ts';
export { exchange } from './init/exchange.ts';
export { init, initMembers, type MembersOptions, memberKeys } from './init/init.ts';
export type { Placement } from './init/placement.ts';
export { isReducible } from './is-reducible.ts';
export type { AxisSize, PerAxis } from './mesh/layout.ts';
export { Mesh, mesh } from './mesh/mesh.ts';
export type { GroupOptions } from './options/group-options.ts';
export type { InitOptions } from './options/init-options.ts';
export type { JoinNcclOptions } from './options/join-nccl-options.ts';
export type { MeshOptions } from './options/mesh-options.ts';
export { refusingMembers } from './options/not-awaited.ts';
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
} from './options/options.ts';
export type { ReduceOp } from './reduce-ops.ts';
export { reduceOps } from './reduce-ops.ts';
export { untilAborted } from './until-aborted.ts';
