// Methods of tensors: elementwise functions beyond arithmetic. ops/elementwise/ documents each.
import type { CloseOptions } from '../op-options.ts';

/**
 * In formulas, `a` is the tensor of the method. `Tensor` is a type parameter, because the file of the class imports
 * this one.
 */
export interface FunctionMethods<Tensor> {
  /** Computes log(1 + a), also for a near 0; under autocast in float32. */
  log1p(): Tensor;
  /** Computes e to the power of a, minus 1, also for a near 0; under autocast in float32. */
  expm1(): Tensor;
  /** Computes the logarithm to base 2; under autocast in float32. */
  log2(): Tensor;
  /** Computes the logarithm to base 10; under autocast in float32. */
  log10(): Tensor;
  /** Computes 2 to the power of each element. */
  exp2(): Tensor;
  /** Computes 1 / a; under autocast in float32. Integers become float32. */
  reciprocal(): Tensor;
  /** Computes the tangent of an angle in radians; under autocast in float32. */
  tan(): Tensor;
  /** Computes the angle in radians whose sine is given; NaN beyond ±1. Under autocast in float32. */
  asin(): Tensor;
  /** Computes the angle in radians whose cosine is given; NaN beyond ±1. Under autocast in float32. */
  acos(): Tensor;
  /** Computes the angle in radians whose tangent is given. */
  atan(): Tensor;
  /** Computes the angle in radians of the points (other, this), from −π to π. Integers become float32. */
  atan2(other: Tensor | number): Tensor;
  /** Computes the hyperbolic sine; under autocast in float32. */
  sinh(): Tensor;
  /** Computes the hyperbolic cosine; under autocast in float32. */
  cosh(): Tensor;
  /** Computes the inverse of sinh. */
  asinh(): Tensor;
  /** Computes the inverse of cosh; NaN below 1. */
  acosh(): Tensor;
  /** Computes the inverse of tanh; ±∞ for ±1, NaN beyond. */
  atanh(): Tensor;
  /** Computes 1 − erf a, also where that is small. */
  erfc(): Tensor;
  /** Computes the inverse of erf: ±∞ for ±1, NaN beyond. */
  erfinv(): Tensor;
  /** Returns the fraction of each element, with its sign. Floats only. */
  frac(): Tensor;
  /** Returns −1, 0 or 1, as sign() does. */
  sgn(): Tensor;
  /** Computes sin(π a) / (π a), and 1 where a is 0. Integers become float32. */
  sinc(): Tensor;
  /**
   * Computes log(a / (1 − a)), the inverse of sigmoid. With `eps`, elements are first limited to [eps, 1 − eps].
   * Integers become float32.
   */
  logit(eps?: number | null): Tensor;
  /** Converts degrees to radians. Integers become float32. */
  deg2rad(): Tensor;
  /** Converts radians to degrees. Integers become float32. */
  rad2deg(): Tensor;
  /**
   * Replaces NaN, ∞ and −∞, by default with 0 and the largest and the smallest number of the dtype. The gradient of a
   * replaced element is 0. Integers are copied.
   */
  nanToNum(nan?: number, posinf?: number | null, neginf?: number | null): Tensor;
  /** Returns true where an element is NaN. */
  isnan(): Tensor;
  /** Returns true where an element is neither NaN nor infinite. */
  isfinite(): Tensor;
  /** Returns true where an element is ∞ or −∞. */
  isinf(): Tensor;
  /** Returns true where an element is ∞. */
  isposinf(): Tensor;
  /** Returns true where an element is −∞. */
  isneginf(): Tensor;
  /** Returns true where an element is negative, also where it is −0 or a NaN with that sign. */
  signbit(): Tensor;
  /**
   * Returns bools: true where |a − other| ≤ atol + rtol · |other|. Tensors are broadcast and have one dtype. Infinities
   * are close to equal ones only.
   */
  isclose(other: Tensor, options?: CloseOptions): Tensor;
  /**
   * Computes the remainder of floorDivide(a, other), which has the sign of `other`. Integers throw where `other` is 0;
   * on a device they give 0 there. Throws for bool.
   */
  remainder(other: Tensor | number): Tensor;
  /** Computes the remainder of a / `other` rounded towards 0, which has the sign of a. Has the rules of remainder(). */
  fmod(other: Tensor | number): Tensor;
  /**
   * Divides and rounds down, also integers. Has the rules of remainder. As in PyTorch, backward throws: there is no
   * gradient.
   */
  floorDivide(other: Tensor | number): Tensor;
  /** Mixes two tensors: a where the weight is 0, `end` where it is 1. All tensors have one dtype of floats. */
  lerp(end: Tensor, weight: Tensor | number): Tensor;
  /** Computes a + value × b × c. All are broadcast. Throws for bool, and for a fraction as `value` of integers. */
  addcmul(b: Tensor, c: Tensor, options?: { readonly value?: number }): Tensor;
  /** Computes a + value × b ÷ c. All are broadcast. Throws unless one is a float. */
  addcdiv(b: Tensor, c: Tensor, options?: { readonly value?: number }): Tensor;
  /** Computes log(eᵃ + eᵇ), without overflow. Throws unless an operand is a float. */
  logaddexp(other: Tensor | number): Tensor;
  /** Computes the logarithm to base 2 of 2ᵃ + 2ᵇ, without overflow. Throws unless an operand is a float. */
  logaddexp2(other: Tensor | number): Tensor;
  /** Computes √(a² + b²), without overflow of the squares. Throws unless an operand is a float. */
  hypot(other: Tensor | number): Tensor;
  /** Returns |a| with the sign of `other`, also that of −0. The gradient of `other` is 0. Integers become float32. */
  copysign(other: Tensor | number): Tensor;
  /** Computes a × log `other`; 0 where a is 0, unless `other` is NaN. Integers become float32. */
  xlogy(other: Tensor | number): Tensor;
  /** Returns 0 where a is below 0 or NaN, 1 where it is above, else the element of `values`, of the same dtype. */
  heaviside(values: Tensor): Tensor;
  /**
   * Returns the larger of two operands; if one is NaN, the other one. Of equal operands the first gets the gradient.
   */
  fmax(other: Tensor | number): Tensor;
  /**
   * Returns the smaller of two operands; if one is NaN, the other one. Of equal operands the first gets the gradient.
   */
  fmin(other: Tensor | number): Tensor;
  /** Computes a to the power of `exponent` in float64, for all dtypes. */
  floatPower(exponent: Tensor | number): Tensor;
  /** Computes a × 2^exponent, in float32 for 16-bit floats. Integers become float32. */
  ldexp(exponent: Tensor | number): Tensor;
  /** Returns a tensor over the same elements, as PyTorch's unary plus does. Throws for bool. */
  positive(): Tensor;
  /** Returns whether the elements are floats. */
  isFloatingPoint(): boolean;
  /** Computes the bitwise and of integers or bools, which are broadcast. */
  bitwiseAnd(other: Tensor | number): Tensor;
  /** Computes the bitwise or of integers or bools, which are broadcast. */
  bitwiseOr(other: Tensor | number): Tensor;
  /** Computes the bitwise exclusive or of integers or bools, which are broadcast. */
  bitwiseXor(other: Tensor | number): Tensor;
  /** Inverts all bits of integers; of bools, swaps true and false. */
  bitwiseNot(): Tensor;
  /**
   * Shifts the bits of a to the left by `other`; the result is 0 if `other` is below 0 or beyond the last bit. Throws
   * for bool.
   */
  bitwiseLeftShift(other: Tensor | number): Tensor;
  /**
   * Shifts the bits of a to the right by `other` and keeps the sign; `other` below 0 shifts all bits out. Throws for
   * bool.
   */
  bitwiseRightShift(other: Tensor | number): Tensor;
  /** Computes the greatest common divisor, which is not negative. Throws for bool. */
  gcd(other: Tensor | number): Tensor;
  /** Computes the least common multiple, which is not negative; 0 where an operand is 0. Throws for bool. */
  lcm(other: Tensor | number): Tensor;
  /** Returns 0 where |a| ≤ lambda, else a. Floats only. */
  hardshrink(lambda?: number): Tensor;
  /**
   * Returns a where it is positive, else a times a learned slope. `weight` has the dtype of this tensor, and one
   * element, or one for each channel, which is dimension 1. Floats only.
   */
  prelu(weight: Tensor): Tensor;
}
