// Options of schedules that are one number for all groups, or a list with a number for each group.
import { type Check, checkValue } from '../../checks/value-checks.ts';

/** Accepts the values that `check` accepts, or a list of them. */
export const orList = (check: Check): Check => ({
  expected: `${check.expected}, or a list of them`,
  fits: (value) => check.fits(value) || (Array.isArray(value) && value.every(check.fits)),
});

/** Throws unless the option is a number, or a list with a number for each of `count` groups. */
export function checkPerGroup(what: string, value: unknown, count: number): void {
  checkValue(what, value, {
    expected: `a number, or ${count}, one for each group`,
    fits: (given) => typeof given === 'number' || (Array.isArray(given) && given.length === count),
  });
}

/** Returns the number of a group; that of the last listed group for groups that were added since. */
export const ofGroup = (value: number | readonly number[], group: number): number =>
  typeof value === 'number' ? value : value[Math.min(group, value.length - 1)]!;
