// Error messages of meshes. They occur before anything is sent, so they do not poison the group.
import { type Failure, local } from '../errors.ts';

export function axesDoNotMultiply(axes: string, product: number, size: number): Failure {
  return local(
    'ERR_COLL_INVALID',
    'mesh',
    `the sizes of the axes do not multiply to the size of the group; expected ${size}, got ${axes} = ${product}`,
    "One axis may have the size 'rest'.",
  );
}

export function restDoesNotDivide(axis: string, others: number, size: number): Failure {
  return local(
    'ERR_COLL_INVALID',
    'mesh',
    `no whole number is left for axis '${axis}', which takes the rest; expected other axes that divide ${size}, got ${others}`,
  );
}

export function twoRests(first: string, second: string): Failure {
  return local(
    'ERR_COLL_INVALID',
    'mesh',
    `both '${first}' and '${second}' take the rest; expected one axis at most`,
  );
}

export function badAxisName(got: string): Failure {
  return local(
    'ERR_COLL_INVALID',
    'mesh',
    `the name of an axis is not usable; expected letters, digits and _, no digit first, got ${got}`,
  );
}

export function axisTwice(name: string): Failure {
  return local('ERR_COLL_INVALID', 'mesh', `'${name}' names an axis and a combination; expected one of them`);
}

export function unknownAxis(verb: string, got: string, known: readonly string[]): Failure {
  return local('ERR_COLL_INVALID', verb, `the mesh has no axis ${got}; expected one of ${known.join(', ')}`);
}

export function meshClosed(verb: string): Failure {
  return local('ERR_COLL_CLOSED', verb, 'the mesh is closed');
}
