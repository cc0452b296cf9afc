// The exports of @ringwise/tensor/optim. Importing it adds the methods to tensors.
import '../ops/methods/index.ts';

export { Adam, type AdamOptions, AdamW, type AdamWOptions } from './adam.ts';
export { AveragedModel, type AveragedModelOptions } from './averages/averaged-model.ts';
export {
  type AvgFn,
  getEmaAvgFn,
  getEmaMultiAvgFn,
  getSwaAvgFn,
  getSwaMultiAvgFn,
  type MultiAvgFn,
} from './averages/averaging.ts';
export { type BnBatch, type UpdateBnOptions, updateBn } from './averages/update-bn.ts';
export { type ClipOptions, clipGradNorm, clipGradValue } from './clip.ts';
export { Adadelta, type AdadeltaOptions } from './composed/adadelta.ts';
export { Adafactor, type AdafactorOptions } from './composed/adafactor.ts';
export { Adagrad, type AdagradOptions } from './composed/adagrad.ts';
export { Adamax, type AdamaxOptions } from './composed/adamax.ts';
export { ASGD, type ASGDOptions } from './composed/asgd.ts';
export { Muon, type MuonOptions } from './composed/muon.ts';
export { NAdam, type NAdamOptions } from './composed/nadam.ts';
export { RAdam, type RAdamOptions } from './composed/radam.ts';
export { Rprop, type RpropOptions } from './composed/rprop.ts';
export { GradScaler, type GradScalerOptions, type GradScalerState } from './grad-scaler.ts';
export { LBFGS, type LBFGSOptions } from './lbfgs/lbfgs.ts';
export { Lion, type LionOptions } from './lion.ts';
export {
  type GroupOptions,
  type LrOptions,
  type NamedParam,
  Optimizer,
  type OptimizerParams,
  type ParamGroup,
} from './optimizer.ts';
export { RMSprop, type RMSpropOptions } from './rmsprop.ts';
export { ChainedScheduler } from './schedules/chained.ts';
export {
  CosineAnnealingLR,
  type CosineAnnealingLROptions,
  WarmupCosineLR,
  type WarmupCosineLROptions,
} from './schedules/cosine.ts';
export { CyclicLR, type CyclicLROptions } from './schedules/cyclic.ts';
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
export {
  ConstantLR,
  type ConstantLROptions,
  MultiplicativeLR,
  PolynomialLR,
  type PolynomialLROptions,
} from './schedules/factors.ts';
export { OneCycleLR, type OneCycleLROptions } from './schedules/one-cycle.ts';
export {
  type PlateauState,
  ReduceLROnPlateau,
  type ReduceLROnPlateauOptions,
} from './schedules/plateau.ts';
export { LrSchedule, RateSetter, Schedule, type ScheduleState } from './schedules/schedule.ts';
export { SequentialLR, type SequentialLROptions } from './schedules/sequential.ts';
export { SWALR, type SWALROptions, type SWALRState } from './schedules/swa.ts';
export {
  CosineAnnealingWarmRestarts,
  type CosineAnnealingWarmRestartsOptions,
} from './schedules/warm-restarts.ts';
export { SGD, type SGDOptions } from './sgd.ts';
export type { OptimizerState, SavedOptimizerState, SavedTensor } from './state.ts';
export { fromTorchState, type TorchParamGroup } from './torch-state.ts';
