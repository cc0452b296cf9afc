// The exports of @ringwise/tensor/optim. The first import gives tensors their methods.
import '../ops/methods/index.ts';

export { Adam, type AdamOptions, AdamW } from './adam.ts';
export { type ClipOptions, clipGradNorm, clipGradValue } from './clip.ts';
export { GradScaler, type GradScalerOptions, type GradScalerState } from './grad-scaler.ts';
export { Lion, type LionOptions } from './lion.ts';
export {
  type GroupOptions,
  type LrOptions,
  Optimizer,
  type OptimizerParams,
  type ParamGroup,
} from './optimizer.ts';
export { RMSprop, type RMSpropOptions } from './rmsprop.ts';
export {
  CosineAnnealingLR,
  type CosineAnnealingLROptions,
  WarmupCosineLR,
  type WarmupCosineLROptions,
} from './schedules/cosine.ts';
export {
  ExponentialLR,
  LambdaLR,
  LinearLR,
  type LinearLROptions,
  type LrFactor,
  MultiStepLR,
  type MultiStepLROptions,
  StepLR,
  type StepLROptions,
} from './schedules/decay.ts';
export { OneCycleLR, type OneCycleLROptions } from './schedules/one-cycle.ts';
export { LrSchedule, Schedule, type ScheduleState } from './schedules/schedule.ts';
export { SequentialLR, type SequentialLROptions } from './schedules/sequential.ts';
export { SGD, type SGDOptions } from './sgd.ts';
export type { OptimizerState } from './state.ts';
