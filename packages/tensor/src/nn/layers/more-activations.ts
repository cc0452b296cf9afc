// Activation functions as layers that are less used than those of activations.ts. Arguments are PyTorch's, by position.
import { checkValue, finite, integer, nonNegative, nonNegativeInteger } from '../../checks/value-checks.ts';
import type { Tensor } from '../../core/tensor.ts';
import { needsRank } from '../../errors.ts';
import { requireTensor } from '../../ops/elementwise/convert.ts';
import {
  celu,
  glu,
  hardshrink,
  hardsigmoid,
  hardswish,
  hardtanh,
  logSigmoid,
  mish,
  prelu,
  relu6,
  selu,
  softmax,
  softmin,
  softshrink,
  softsign,
  tanhshrink,
  threshold,
} from '../../ops/index.ts';
import { checkSlopes, rrelu } from '../../random/random-activations.ts';
import { declareFields } from '../fields.ts';
import { constantParameter } from '../init.ts';
import { Module } from '../module.ts';

/** Layer of relu6(). */
export class ReLU6 extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return relu6(input);
  }
}

/** Layer of hardsigmoid(). */
export class Hardsigmoid extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return hardsigmoid(input);
  }
}

/** Layer of hardswish(). */
export class Hardswish extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return hardswish(input);
  }
}

/** Layer of tanhshrink(). */
export class Tanhshrink extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return tanhshrink(input);
  }
}

/** Layer of softsign(). */
export class Softsign extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return softsign(input);
  }
}

/** Layer of selu(). */
export class SELU extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return selu(input);
  }
}

/** Layer of mish(). */
export class Mish extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return mish(input);
  }
}

/** Layer of logSigmoid(). */
export class LogSigmoid extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return logSigmoid(input);
  }
}

/** Layer of hardshrink(). */
export class Hardshrink extends Module {
  /** Elements from −lambda to lambda become 0. */
  readonly lambda: number;

  constructor(lambda = 0.5) {
    super();
    checkValue('Hardshrink: lambda', lambda, finite);
    this.lambda = lambda;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return hardshrink(input, this.lambda);
  }
}

/** Layer of softshrink(). */
export class Softshrink extends Module {
  /** Elements from −lambda to lambda become 0. */
  readonly lambda: number;

  constructor(lambda = 0.5) {
    super();
    checkValue('Softshrink: lambda', lambda, nonNegative);
    this.lambda = lambda;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return softshrink(input, this.lambda);
  }
}

/** Layer of celu(). */
export class CELU extends Module {
  /** Factor of exp(x ÷ alpha) − 1 for elements below 0. */
  readonly alpha: number;

  constructor(alpha = 1) {
    super();
    checkValue('CELU: alpha', alpha, finite);
    this.alpha = alpha;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return celu(input, this.alpha);
  }
}

/** Layer of glu(). */
export class GLU extends Module {
  /** Dimension that is split into halves. */
  readonly dim: number;

  constructor(dim = -1) {
    super();
    checkValue('GLU: dim', dim, integer);
    this.dim = dim;
  }

  /** Returns a tensor with half the size along `dim`. */
  forward(input: Tensor): Tensor {
    return glu(input, this.dim);
  }
}

/** Layer of hardtanh(). */
export class Hardtanh extends Module {
  /** Smallest result. */
  readonly minVal: number;
  /** Largest result. */
  readonly maxVal: number;

  constructor(minVal = -1, maxVal = 1) {
    super();
    checkValue('Hardtanh: minVal', minVal, finite);
    checkValue('Hardtanh: maxVal', maxVal, {
      expected: `a number > ${minVal}`,
      fits: (value) => (value as number) > minVal,
    });
    this.minVal = minVal;
    this.maxVal = maxVal;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return hardtanh(input, this.minVal, this.maxVal);
  }
}

/** Layer of threshold(). */
export class Threshold extends Module {
  /** Elements above this number stay as they are. */
  readonly threshold: number;
  /** Replacement for all other elements. */
  readonly value: number;

  constructor(least: number, value: number) {
    super();
    checkValue('Threshold: threshold', least, finite);
    checkValue('Threshold: value', value, finite);
    this.threshold = least;
    this.value = value;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return threshold(input, this.threshold, this.value);
  }
}

/** Layer of prelu(). Its slopes below 0 are a parameter: one, or one for each channel, which is dimension 1. */
export class PReLU extends Module {
  /** Factors of elements below 0: [1], or [channels]. */
  weight: Tensor;

  constructor(numParameters = 1, init = 0.25) {
    super();
    checkValue('PReLU: numParameters', numParameters, nonNegativeInteger);
    checkValue('PReLU: init', init, finite);
    this.weight = constantParameter([numParameters], init);
    declareFields(this, { weight: 'parameter' });
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return prelu(input, this.weight);
  }
}

/** Layer of softmax() of the negated input along one dimension. */
export class Softmin extends Module {
  /** Dimension along which results sum to 1. */
  readonly dim: number;

  constructor(dim = -1) {
    super();
    checkValue('Softmin: dim', dim, integer);
    this.dim = dim;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return softmin(input, this.dim);
  }
}

/** Layer of softmax() over the channels of [batch, channels, height, width] or [channels, height, width]. */
export class Softmax2d extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    requireTensor('Softmax2d', input);
    if (input.rank !== 3 && input.rank !== 4) throw needsRank('Softmax2d', '3 or 4', input.shape);
    return softmax(input, -3);
  }
}

/** Layer of rrelu(): slopes below 0 are random while training. */
export class RReLU extends Module {
  /** Smallest factor of elements below 0. */
  readonly lower: number;
  /** Largest factor of elements below 0. */
  readonly upper: number;

  constructor(lower = 1 / 8, upper = 1 / 3) {
    super();
    checkSlopes('RReLU', lower, upper);
    this.lower = lower;
    this.upper = upper;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return rrelu(input, this.lower, this.upper, { training: this.training });
  }
}
