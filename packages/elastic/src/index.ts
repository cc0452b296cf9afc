/**
 * Training that goes on when ranks are lost or join.
 *
 * @packageDocumentation
 */
export type { Ballot, Change, Membership, Progress, Vote } from './membership/membership.ts';
export type { Decision, Member, Report, View } from './membership/view.ts';
