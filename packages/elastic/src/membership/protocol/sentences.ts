// The sentences that the last view of a job has as `ended`: the reason for its end.
import type { RepeatedFailure, Report } from './view.ts';

export const tooFewLeft = (count: number, min: number, joinTimeoutMs: number): string =>
  `${count} of at least ${min} members are left, and no others joined within ${joinTimeoutMs} ms`;

export const allLeft = (finalSteps: number): string => `all members left after step ${finalSteps}`;

export const allLost = (finalSteps: number): string =>
  `all members that had the state of the training are lost; at least ${finalSteps} steps were final. Start again from the last snapshot`;

export const over = (finalSteps: number): string =>
  `the training is over: its members have ended after step ${finalSteps}, before those that joined had its state`;

export const contradiction = ({ member, finalSteps, isComplete }: Report, ahead: number): string =>
  `member ${member} reports ${finalSteps} applied steps and ${isComplete ? '' : 'no '}complete averages, but another member has applied ${ahead}; expected at most one step between them`;

export const repeats = ({ what, times }: RepeatedFailure, finalSteps: number): string =>
  `step ${finalSteps} has failed ${times} times in the same way: ${what}`;

export const minority = (kept: number, size: number, hasMoved: boolean): string =>
  hasMoved
    ? `the store is lost with its host, and ${kept} of the ${size} members of the last view are here; to go on in another store takes a view on three hosts or more, and more than half of its members`
    : `${kept} of the ${size} members of the last view reach the store, and the others may go on in another one; expected at least half of them`;
