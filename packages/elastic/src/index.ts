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
export { joinMembership } from './membership/join.ts';
export type { Ballot, Change, Membership, Progress, Vote } from './membership/membership.ts';
export type { MembershipOptions } from './membership/options.ts';
export type { Decision, Member, RepeatedFailure, Report, View } from './membership/view.ts';
