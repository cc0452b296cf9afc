// Activation functions and dropout as layers, without parameters.

import { aNumber, checkValue, finite, integer, probability } from '../../checks/value-checks.ts';
import type { GeluOptions } from '../../core/op-options.ts';
import type { Tensor } from '../../core/tensor.ts';
import { isTanhGelu } from '../../ops/elementwise/unary.ts';
import {
  dropout,
  elu,
  gelu,
  leakyRelu,
  logSoftmax,
  sigmoid,
  silu,
  softmax,
  softplus,
  tanh,
} from '../../ops/index.ts';
import { Module } from '../module.ts';

/** Layer of gelu(). */
export class GELU extends Module {
  /** 'tanh' for the approximation by tanh, 'none' for the exact function. */
  readonly approximate: 'none' | 'tanh';

  constructor(options: GeluOptions = {}) {
    super();
    this.approximate = isTanhGelu('GELU', options) ? 'tanh' : 'none';
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return gelu(input, { approximate: this.approximate });
  }
}

/** Layer of silu(). */
export class SiLU extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return silu(input);
  }
}

/** Layer of tanh(). */
export class Tanh extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return tanh(input);
  }
}

/** Layer of sigmoid(). */
export class Sigmoid extends Module {
  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return sigmoid(input);
  }
}

/** Layer of leakyRelu(). */
export class LeakyReLU extends Module {
  /** Factor of elements below 0. */
  readonly slope: number;

  constructor(slope = 0.01) {
    super();
    checkValue('LeakyReLU: slope', slope, finite);
    this.slope = slope;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return leakyRelu(input, this.slope);
  }
}

/** Layer of elu(). */
export class ELU extends Module {
  /** Factor of exp(x) − 1 for elements below 0. */
  readonly alpha: number;

  constructor(alpha = 1) {
    super();
    checkValue('ELU: alpha', alpha, finite);
    this.alpha = alpha;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return elu(input, this.alpha);
  }
}

/** Layer of softplus(). */
export class Softplus extends Module {
  /** Factor of the elements in the exponential. */
  readonly beta: number;
  /** Elements times beta above this stay as they are. */
  readonly threshold: number;

  constructor(beta = 1, threshold = 20) {
    super();
    checkValue('Softplus: beta', beta, finite);
    checkValue('Softplus: threshold', threshold, aNumber);
    this.beta = beta;
    this.threshold = threshold;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return softplus(input, this.beta, this.threshold);
  }
}

/** Layer of softmax() along one dimension. */
export class Softmax extends Module {
  /** Dimension along which probabilities sum to 1. */
  readonly dim: number;

  constructor(dim = -1) {
    super();
    checkValue('Softmax: dim', dim, integer);
    this.dim = dim;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return softmax(input, this.dim);
  }
}

/** Layer of logSoftmax() along one dimension. */
export class LogSoftmax extends Module {
  /** Dimension along which probabilities sum to 1. */
  readonly dim: number;

  constructor(dim = -1) {
    super();
    checkValue('LogSoftmax: dim', dim, integer);
    this.dim = dim;
  }

  /** Returns a tensor of the same shape. */
  forward(input: Tensor): Tensor {
    return logSoftmax(input, this.dim);
  }
}

/** Layer that returns its input. */
export class Identity extends Module {
  /** Returns the input itself, not a copy. */
  forward(input: Tensor): Tensor {
    return input;
  }
}

/** While training, sets each element to 0 with probability p and divides the others by 1 − p. */
export class Dropout extends Module {
  /** Probability with which an element becomes 0 while training. */
  readonly p: number;

  constructor(p = 0.5) {
    super();
    checkValue('Dropout: p', p, probability);
    this.p = p;
  }

  /** Returns a tensor of the same shape; the input itself in evaluation. */
  forward(input: Tensor): Tensor {
    return dropout(input, this.p, { training: this.training });
  }
}
