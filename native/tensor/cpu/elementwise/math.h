// exp, log, tanh and erf of whole vectors: polynomials after range reduction (W. J. Cody and
// W. Waite, "Software Manual for the Elementary Functions", 1980; coefficients as in the Cephes library's single
// precision functions). Relative errors stay below 2e-7; infinities, NaN and subnormal results come out as the C
// library's do. Included only by families/.
namespace ringwise::tensor::RINGWISE_LEVEL {

// Evaluates a polynomial by Horner's scheme; the highest coefficient comes first.
template <class... Rest>
RINGWISE_INLINE inline Vec polynomial(Vec x, float first, Rest... rest) {
  Vec sum = splat(first);
  ((sum = sum * x + splat(rest)), ...);
  return sum;
}

// Returns 2^n, for n in [-126, 127].
inline Vec power_of_two(IntVec n) { return from_bits((n + splat_int(127)) << 23); }

inline Vec exp_vec(Vec x) {
  // Below -104 the result is 0 without computing: each operation on subnormal numbers costs the processor some 150
  // cycles. Above 89 it is infinite. Comparisons with NaN are false, so NaN passes.
  const IntVec is_zero = x < splat(-104.0f);
  x = is_zero ? Vec{} : x;
  x = x > splat(89.0f) ? splat(89.0f) : x;
  // n = x / ln 2, rounded to an integer by adding and subtracting 1.5 * 2^23.
  const Vec magic = splat(12582912.0f);
  const Vec shifted = x * splat(1.44269504088896341f) + magic;
  const Vec n = shifted - magic;
  const Vec r = x - n * splat(0.693359375f) - n * splat(-2.12194440e-4f);
  const Vec tail = polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                              1.6666665459e-1f, 5.0000001201e-1f);
  const Vec value = tail * r * r + r + splat(1.0f);
  // Multiplies by 2^n in two factors: 2^n alone may be subnormal or infinite, which power_of_two() cannot make.
  const IntVec whole = bits(shifted) - bits(magic), half = whole >> 1;
  return is_zero ? Vec{} : value * power_of_two(half) * power_of_two(whole - half);
}

inline Vec log_vec(Vec x) {
  // Subnormal arguments are scaled up first. x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const IntVec is_small = x < splat(1.17549435e-38f);
  const Vec scaled = is_small ? x * splat(8388608.0f) : x;
  const IntVec offset = (bits(scaled) & splat_int(INT32_MAX)) - splat_int(0x3f3504f3);  // sqrt(1/2)
  const IntVec exponent = (offset >> 23) - (is_small & splat_int(23));
  const Vec m = from_bits((offset & splat_int(0x007fffff)) + splat_int(0x3f3504f3));
  const Vec e = __builtin_convertvector(exponent, Vec);
  const Vec f = m - splat(1.0f);
  const Vec tail =
      polynomial(f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                 -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  const Vec square = f * f;
  const Vec low = tail * f * square + e * splat(-2.12194440e-4f) - splat(0.5f) * square;
  const Vec value = low + f + e * splat(0.693359375f);
  const Vec infinity = splat(std::numeric_limits<float>::infinity());
  const Vec edge = x == splat(0.0f) ? -infinity
                   : x == infinity  ? infinity
                                    : splat(std::numeric_limits<float>::quiet_NaN());
  const IntVec is_regular = (x > splat(0.0f)) & (x < infinity);
  return is_regular ? value : edge;
}

inline Vec tanh_vec(Vec x) {
  const IntVec sign = bits(x) & splat_int(INT32_MIN);
  const Vec size = from_bits(bits(x) & splat_int(INT32_MAX));
  // Elsewhere 1 - 2 / (e^2x + 1); near 0 its terms cancel, so a polynomial is used.
  const Vec square = x * x;
  const Vec tail = polynomial(square, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                              -3.33332819422e-1f);
  const Vec near = tail * square * x + x;
  const Vec far = splat(1.0f) - splat(2.0f) / (exp_vec(size + size) + splat(1.0f));
  return from_bits(bits(size < splat(0.625f) ? near : far) | sign);  // near 0 the sum loses the sign of -0
}

inline Vec erf_vec(Vec x) {
  const IntVec sign = bits(x) & splat_int(INT32_MIN);
  const Vec size = from_bits(bits(x) & splat_int(INT32_MAX));
  const Vec square = x * x;
  const Vec near =
      x * polynomial(square, 7.853861353153693e-5f, -8.010193625184903e-4f, 5.188327685732524e-3f,
                     -2.685381193529856e-2f, 1.128358514861418e-1f, -3.761262582423300e-1f, 1.128379165726710f);
  // Beyond 1 it is 1 - erfc, which beyond 4 is 1 in float32.
  const Vec within = size > splat(4.0f) ? splat(4.0f) : size < splat(1.0f) ? splat(1.0f) : size;
  const Vec q = splat(1.0f) / within;
  const Vec y = q * q;
  const Vec low = polynomial(y, 2.326819970068386e-2f, -1.387039388740657e-1f, 3.687424674597105e-1f,
                             -5.824733027278666e-1f, 6.210004621745983e-1f, -4.944515323274145e-1f,
                             3.404879937665872e-1f, -2.741127028184656e-1f, 5.638259427386472e-1f);
  const Vec high =
      polynomial(y, -1.047766399936249e+1f, 1.297719955372516e+1f, -7.495518717768503f, 2.921019019210786f,
                 -1.015265279202700f, 4.218463358204948e-1f, -2.820767439740514e-1f, 5.641895067754075e-1f);
  const Vec far = splat(1.0f) - exp_vec(-within * within) * q * (within < splat(2.0f) ? low : high);
  // The comparison is false for NaN, and the polynomial passes NaN on.
  return size >= splat(1.0f) ? from_bits(bits(far) | sign) : near;
}

}  // namespace ringwise::tensor::RINGWISE_LEVEL
