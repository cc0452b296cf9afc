// Cases of matrix products and attention.
import type { Arg, Ref } from '../../case.ts';
import { allTypes, type Draft, nothing } from '../../draft.ts';
import type { Makers } from '../index.ts';

/** Returns `size`, or in a few cases a size that does not fit. */
const wrong = (d: Draft, size: number): number => (d.draws.chance(0.03) ? size + 1 : size);

function matmul(d: Draft): void {
  const { draws } = d;
  const dtype = d.anyType();
  const other = d.beside(dtype, allTypes);
  const [m, k, n] = [d.size(), d.size(), d.size()];
  const batch = draws.chance(0.5) ? [] : d.shape(1, 2);
  const left = draws.chance(0.2) ? [k] : [...d.narrower(batch), m, k];
  const right = draws.chance(0.2) ? [wrong(d, k)] : [...d.narrower(batch), wrong(d, k), n];
  const domain = dtype === 'uint8' ? 'share' : 'any';
  d.call('matmul', d.tensor(left, { dtype, domain }), d.tensor(right, { dtype: other, domain }));
}

function linear(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const [ins, outs] = [d.size(), d.size()];
  const x = d.tensor(draws.chance(0.1) ? [ins] : [...d.shape(1, 2), wrong(d, ins)], { dtype });
  const w = d.tensor([outs, ins], { dtype });
  const biasSize = draws.chance(0.05) ? 1 : wrong(d, outs);
  const b = draws.chance(0.3) ? null : d.tensor([biasSize], { dtype });
  const activation = draws.pick<Arg>([
    nothing,
    nothing,
    { activation: 'relu' },
    { activation: 'gelu' },
    { activation: 'geluTanh' },
  ]);
  d.call('linear', x, w, b, activation);
}

const equations = [
  ...['i->', 'i->i', 'ij->ji', 'ij->', 'ij->j', 'ij', 'ji', 'ii->i', 'ii', 'iij->j'],
  ...[
    'i,i->',
    'i,j->ij',
    'ij,j->i',
    'ij,jk->ik',
    'ij,kj',
    'bij,bjk->bik',
    'bij,bjk->',
    'ij,ij->ij',
    'ij,ji->i',
    'ii,ij->j',
  ],
  ...[
    '...ij->...ji',
    '...i,i->...',
    '...ij,...jk->...ik',
    'i...,i...->...',
    '...',
    'ij,jk,kl->il',
    'ij,jk,k->i',
    'a,b,c->cab',
  ],
  ...['ij,jk->kk', 'ij,j->k', 'i,i->ii', 'ij,jk', 'i->j', 'ij->i->', 'i1->i'],
];

function einsum(d: Draft): void {
  const { draws } = d;
  const equation = draws.pick(equations);
  const sizes: Record<string, number> = {};
  const dtype = d.floatType();
  const rest = d.shape(0, 2);
  const operands = equation
    .split('->')[0]!
    .split(',')
    .map((names) => {
      const shape = names
        .replace('...', '*')
        .split('')
        .flatMap((name) => {
          if (name === '*') return d.narrower(rest);
          sizes[name] ??= d.size();
          return [draws.chance(0.02) ? 5 : draws.chance(0.03) ? 1 : sizes[name]];
        });
      return d.tensor(shape, { dtype });
    });
  d.call('einsum', draws.chance(0.1) ? equation.replace(',', ' , ') : equation, ...operands);
}

/**
 * Draws options. With a causal mask the scale is above 0: PyTorch multiplies the −∞ of the mask by the scale, which
 * gives NaN for a scale ≤ 0.
 */
function attentionOptions(d: Draft, mask: Ref | null, isCausal: boolean): Record<string, Arg> {
  const own: Record<string, Arg> = {};
  if (isCausal) own.causal = true;
  if (mask) own.mask = mask;
  if (d.draws.chance(0.3)) own.scale = d.draws.pick(isCausal ? [0.5, 2] : [0.5, 2, 0, -1]);
  return own;
}

/** Draws attention. PyTorch does not check shapes if the result is empty, so only other cases have wrong shapes. */
function attention(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const [queries, keys, width, valueWidth] = [
    d.size(),
    d.size(),
    Math.max(1, d.size()),
    Math.max(1, d.size()),
  ];
  const lead = d.shape(0, 2);
  const isEmpty = queries === 0 || keys === 0 || lead.includes(0);
  const isGrouped = lead.length === 2 && !isEmpty && draws.chance(0.2);
  const heads = isGrouped ? draws.pick([1, 1, 2, 3]) : 1;
  const many = isGrouped ? [lead[0]!, lead[1]! * heads] : lead;
  const fewer = isGrouped || isEmpty ? lead : d.narrower(lead);
  const spec = { dtype, domain: draws.pick(['real', 'coarse', 'any'] as const) };
  const q = d.tensor([...many, queries, width], spec);
  const k = d.tensor([...fewer, keys, isEmpty ? width : wrong(d, width)], spec);
  const v = d.tensor([...fewer, keys, valueWidth], spec);
  const isMasked = draws.chance(0.4);
  const maskShape = isEmpty ? [queries, keys] : d.narrower([...many, queries, keys]);
  const maskSpec = {
    dtype: draws.chance(0.5) ? 'bool' : dtype,
    domain: 'coarse',
    grad: draws.chance(0.3),
  } as const;
  if (isMasked && maskShape.length < 2) d.tags.add('mask of fewer than 2 dimensions');
  const mask = isMasked ? d.tensor(maskShape, maskSpec) : null;
  const own = attentionOptions(d, mask, !isMasked && draws.chance(0.4));
  if (isGrouped) own.enableGqa = true;
  d.call('scaledDotProductAttention', q, k, v, Object.keys(own).length > 0 ? own : nothing);
}

function selfAttention(d: Draft): void {
  const { draws } = d;
  const dtype = d.floatType();
  const heads = draws.int(1, 3);
  const width = draws.int(1, 3) * heads;
  const qkv = d.tensor([...d.shape(0, 2), d.size(), 3 * wrong(d, width)], { dtype, domain: 'finite' });
  const own = attentionOptions(d, null, draws.chance(0.5));
  d.call('selfAttention', qkv, heads, Object.keys(own).length > 0 ? own : nothing);
}

export const matrices: Makers = {
  matmul: { draw: matmul, count: 30 },
  linear: { draw: linear, count: 18 },
  einsum: { draw: einsum, count: 40 },
  scaledDotProductAttention: { draw: attention, count: 30, isUnsteady: true },
  selfAttention: { draw: selfAttention, count: 12, isUnsteady: true },
};
