// Operations of two elements beyond arithmetic: angles, quotients rounded down, remainders, bits.

const isNegative = (x: number): boolean => x < 0 || Object.is(x, -0);

function logAddExp(a: number, b: number): number {
  if (a === b && Math.abs(a) === Infinity) return a;
  return Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
}

function remainder(a: number, b: number): number {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}

/** Subtracts the remainder before the division: the rounded quotient a / b may be the next larger integer. */
function floorDiv(a: number, b: number): number {
  if (b === 0) return a / b;
  const rest = a % b;
  const quotient = (a - rest) / b - Number(rest !== 0 && rest < 0 !== b < 0);
  if (quotient === 0) return isNegative(a / b) ? -0 : 0;
  const floor = Math.floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

export const floatPairs = {
  atan2: Math.atan2,
  hypot: (a: number, b: number) => Math.hypot(a, b),
  copysign: (a: number, b: number) => (isNegative(b) ? -Math.abs(a) : Math.abs(a)),
  logAddExp,
  xlogy: (a: number, b: number) => (a === 0 && !Number.isNaN(b) ? 0 : a * Math.log(b)),
  remainder,
  fmod: (a: number, b: number) => a % b,
  floorDiv,
} as const;

function remainderOf(a: bigint, b: bigint): bigint {
  if (b === 0n) return 0n;
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

const integerOnly = {
  bitAnd: (a: bigint, b: bigint) => a & b,
  bitOr: (a: bigint, b: bigint) => a | b,
  bitXor: (a: bigint, b: bigint) => a ^ b,
  shiftLeft: (a: bigint, b: bigint) => (b < 0n || b > 63n ? 0n : a << b),
  shiftRight: (a: bigint, b: bigint) => a >> (b < 0n || b > 63n ? 63n : b),
  gcd,
} as const;
export type IntegerOp = keyof typeof integerOnly;

export const integerPairs = {
  ...integerOnly,
  remainder: remainderOf,
  fmod: (a: bigint, b: bigint) => (b === 0n ? 0n : a % b),
  floorDiv: (a: bigint, b: bigint) => (b === 0n ? 0n : (a - remainderOf(a, b)) / b),
} as const;
