// Failures of the verbs that send JavaScript values.
import { type Failure, invalid, withoutStop } from './collective-error.ts';

export function notCloneable(verb: string, reason: string): Failure {
  return invalid(
    verb,
    `the value cannot be sent: ${withoutStop(reason)}`,
    'Send values that structured clone accepts: data, no functions.',
  );
}

export function objectTooLarge(verb: string, bytes: number, max: number): Failure {
  return invalid(
    verb,
    `the objects are too large; expected at most ${max} bytes together, got ${bytes}`,
    'Send large data as typed arrays.',
  );
}

export function unreadableObject(verb: string, reason: string): Failure {
  return invalid(
    verb,
    `this rank cannot read the object that arrived: ${withoutStop(reason)}`,
    'Do all ranks run the same version of Node?',
  );
}

export function missingValues(verb: string, size: number, got: number | undefined): Failure {
  return invalid(verb, `the root has ${got ?? 'no'} values; expected one for each of ${size} ranks`);
}
