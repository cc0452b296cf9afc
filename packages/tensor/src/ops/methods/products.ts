// Methods that multiply matrices and read or write diagonals.
import type { ProductMethods } from '../../core/methods/products.ts';
import type { Tensor } from '../../core/tensor.ts';
import { addbmm, addmm, addmv, addr, baddbmm } from '../matrix/added.ts';
import { diag, diagEmbed, diagflat, diagonal, trace } from '../matrix/diagonals.ts';
import { bmm, cross, dot, inner, kron, mm, mv, outer, vdot } from '../matrix/products.ts';
import { addFunctions } from './define.ts';

addFunctions<ProductMethods<Tensor>>({
  ...{ outer, mm, bmm, mv, dot, vdot, inner, kron, cross },
  ...{ addmm, addmv, addr, baddbmm, addbmm },
  ...{ diagonal, diag, diagflat, diagEmbed, trace },
});
