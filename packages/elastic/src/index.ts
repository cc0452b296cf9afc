/**
 * Training that goes on when ranks are lost or join.
 *
 * @packageDocumentation
 */
export { DiLoCo, type DilocoChange, type DilocoStepEnd, diloco } from './diloco/diloco.ts';
export type {
  DilocoOptions,
  InnerOptimizer,
  MakeOuter,
  OuterOptimizer,
  OuterParam,
} from './diloco/options.ts';
export type { DilocoFragmentState, DilocoOwnState, DilocoState } from './diloco/state.ts';
export { ElasticError, type ElasticErrorCode } from './errors.ts';
export { elastic } from './job/elastic.ts';
export { ElasticJob, type ElasticLoaderOptions } from './job/job.ts';
export type { LogEntry, LogTarget } from './job/log.ts';
export type { ElasticDdpOptions, ElasticOptions } from './job/options.ts';
export type { Stateful } from './job/stateful.ts';
export type { ElasticStep, RunOptions, StepFunction, StepResult } from './job/step.ts';
export type { StreamGenerator } from './job/streams.ts';
export type { ElasticOptimizer, ElasticScaler, ElasticShards } from './job/trained.ts';
export type { StateTransfer, ViewChange } from './job/views.ts';
export type { Learned } from './learners/learner.ts';
export type { ElasticLoader, LoadOptions } from './ledger/elastic-loader.ts';
export type { Cursor, LedgerOptions, MicroBatch } from './ledger/ledger.ts';
export { joinMembership } from './membership/join.ts';
export type { Ballot, Change, Membership, Progress, Vote } from './membership/membership.ts';
export type { MembershipOptions } from './membership/options.ts';
export type { Decision, Member, RepeatedFailure, Report, View } from './membership/protocol/view.ts';
