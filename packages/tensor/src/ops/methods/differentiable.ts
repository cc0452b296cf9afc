// Tensors offer their autograd to collectives with gradients.
import { type Autograd, differentiableSymbol } from '../../core/protocol.ts';
import { Tensor } from '../../core/tensor.ts';
import { autograd } from '../differentiable.ts';

Object.defineProperty(Tensor.prototype, differentiableSymbol, {
  value: (): Autograd<Tensor> => autograd,
});
