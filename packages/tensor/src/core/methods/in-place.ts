// The in-place forms of elementwise operations: name_() computes what name() does and writes the result into the
// tensor. Each has the arguments of name().

/** The operations that have an in-place form made by ops/elementwise/functions/in-place-forms.ts. */
export const inPlaceForms = [
  ...(['abs', 'neg', 'sign', 'sgn', 'exp', 'log', 'sqrt', 'rsqrt', 'square', 'sin', 'cos', 'tan'] as const),
  ...([
    'tanh',
    'sigmoid',
    'relu',
    'erf',
    'erfc',
    'erfinv',
    'floor',
    'ceil',
    'round',
    'trunc',
    'frac',
  ] as const),
  ...([
    'log1p',
    'expm1',
    'log2',
    'log10',
    'exp2',
    'reciprocal',
    'asin',
    'acos',
    'atan',
    'sinh',
    'cosh',
  ] as const),
  ...([
    'asinh',
    'acosh',
    'atanh',
    'sinc',
    'logit',
    'deg2rad',
    'rad2deg',
    'nanToNum',
    'pow',
    'clamp',
  ] as const),
  ...([
    'maskedFill',
    'lerp',
    'addcmul',
    'addcdiv',
    'atan2',
    'hypot',
    'copysign',
    'xlogy',
    'heaviside',
  ] as const),
  ...(['remainder', 'fmod', 'floorDivide', 'gcd', 'lcm', 'eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const),
  ...(['logicalAnd', 'logicalOr', 'logicalXor', 'logicalNot', 'bitwiseAnd', 'bitwiseOr'] as const),
  ...(['ldexp'] as const),
  ...(['scatter', 'scatterAdd', 'indexAdd', 'indexCopy', 'indexFill', 'put', 'maskedScatter'] as const),
  ...(['bitwiseXor', 'bitwiseNot', 'bitwiseLeftShift', 'bitwiseRightShift'] as const),
] as const;
export type InPlaceForm = (typeof inPlaceForms)[number];

/** The methods name_() for the methods of an interface. */
export type InPlaceMethods<Methods> = {
  [Name in InPlaceForm & keyof Methods as `${Name}_`]: Methods[Name];
};
