// Arguments of the normalisation kernels: rows of `cols` dense elements, all of one type, float32 or float64.
// With `mean` it is layer normalisation, (a - mean) * rstd; without, root-mean-square normalisation, a * rstd. Both
// are scaled by gamma and shifted by beta, where there is one.
#pragma once

#include <cstddef>

namespace ringwise::tensor {

struct Norm {
  size_t rows, cols;
  double eps;
  void* out;
  void* mean;  // one per row, or null
  void* rstd;  // one per row
  const void* a;
  const void* addend;  // normalises a + addend, which is written to `sum`; both null otherwise
  void* sum;
  const void* gamma;  // null: 1
  const void* beta;   // null: 0
};

struct NormGrad {
  size_t rows, cols;
  bool accumulate;   // adds to grad_in
  void* grad_in;     // any of the three outputs may be null
  void* grad_gamma;  // written, not added to
  void* grad_beta;
  const void* grad_out;
  const void* a;
  const void* mean;  // as in Norm
  const void* rstd;
  const void* gamma;
};

}  // namespace ringwise::tensor
