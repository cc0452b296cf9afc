// What the ranks of across.test.ts run, and the same computed by one process from the tensors of all ranks.
import { cat, narrow, type Tensor, tensor } from '@ringwise/tensor';
import { type Across, across, init } from '../../src/index.ts';

export type Kind = 'float32' | 'float64' | 'bfloat16';

/** The verbs in one of their two forms. */
type Verbs = { readonly [Name in keyof Across]: Across[Name] };
type Run = (verbs: Verbs, x: Tensor, rank: number, size: number) => Promise<Tensor>;

export interface Case {
  readonly name: string;
  /** The shape of a rank's tensor. */
  readonly shapeOf: (rank: number, size: number) => readonly number[];
  /** Whether all ranks have the tensor of rank 0. */
  readonly isShared?: boolean;
  /** Whether the elements of the average are exact only for powers of two. */
  readonly divides?: boolean;
  /** Returns the loss of a rank. */
  readonly run: Run;
  /**
   * Returns the loss of all ranks together: their sum, or, where all compute the same, that of one. Not added up: a
   * loss that a tensor's gradient does not come from.
   */
  readonly joined: (xs: readonly Tensor[], size: number) => Tensor;
}

const countOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);

/** Values that differ between ranks. For bfloat16 they are so small that all sums are exact. */
function values(kind: Kind, count: number, seed: number): Float64Array {
  return Float64Array.from({ length: count }, (_, i) =>
    kind === 'bfloat16' ? ((i * 7 + seed * 5) % 3) - 1 : Math.sin(1.3 * i + 0.7 * seed) + 0.1 * seed,
  );
}

export const inputOf = (
  kind: Kind,
  { shapeOf, isShared = false }: Case,
  rank: number,
  size: number,
): Tensor => {
  const source = isShared ? 0 : rank;
  const shape = shapeOf(source, size);
  return tensor(values(kind, countOf(shape), source), { dtype: kind, shape, requiresGrad: true });
};

/** A loss whose gradient depends on the values, and on the seed: rank r's own loss has the seed r + 1. */
function lossOf(y: Tensor, seed: number): Tensor {
  const { dtype, shape, count } = y;
  const weights = Float64Array.from({ length: count }, (_, i) => 1 + ((i + seed) % 2) * 0.5);
  return y.mul(y).mul(tensor(weights, { dtype, shape })).sum();
}

const same = (y: Tensor): Tensor => lossOf(y, 0);
const own = (y: Tensor, rank: number): Tensor => lossOf(y, rank + 1);
const ranksOf = (size: number): number[] => [...Array(size).keys()];
const addUp = (all: readonly Tensor[]): Tensor => all.reduce((sum, each) => sum.add(each));
/** Σ over the ranks of their own losses, each of what `of` gives. */
const everyOwn = (size: number, of: (rank: number) => Tensor): Tensor =>
  addUp(ranksOf(size).map((rank) => own(of(rank), rank)));

const cube = () => [3, 4, 5];
/** [3, 4, 5] with dimension `dim` as long as `length` says. */
const along = (dim: number, length: number): readonly number[] => {
  const shape = cube();
  shape[dim < 0 ? dim + 3 : dim] = length;
  return shape;
};
const meanOf = (xs: readonly Tensor[]): Tensor => addUp(xs).div(xs.length);
const reduced = { sum: addUp, avg: meanOf } as const;
const uneven = (size: number): number[] => ranksOf(size).map((rank) => (rank === 1 ? 0 : rank + 1));
const even = (size: number): number[] => new Array<number>(size).fill(2);
const total = (sizes: readonly number[]): number => sizes.reduce((sum, each) => sum + each, 0);
const partAlong = (x: Tensor, dim: number, sizes: readonly number[], rank: number): Tensor =>
  narrow(x, dim, total(sizes.slice(0, rank)), sizes[rank]!);

function reductions(): Case[] {
  const ops = ['sum', 'avg'] as const;
  return [
    {
      name: 'enter',
      shapeOf: cube,
      isShared: true,
      run: async (verbs, x, rank) => own(verbs.enter(x), rank),
      joined: (xs, size) => everyOwn(size, () => xs[0]!),
    },
    ...ops.flatMap((op): Case[] => [
      {
        name: `allReduce ${op}, after same`,
        shapeOf: cube,
        divides: op === 'avg',
        run: async (verbs, x) => same(await verbs.allReduce(x, { op, after: 'same' })),
        joined: (xs) => same(reduced[op](xs)),
      },
      {
        name: `allReduce ${op}, after own`,
        shapeOf: cube,
        divides: op === 'avg',
        run: async (verbs, x, rank) => own(await verbs.allReduce(x, { op, after: 'own' }), rank),
        joined: (xs, size) => everyOwn(size, () => reduced[op](xs)),
      },
      {
        name: `reduce ${op} to the last rank`,
        shapeOf: cube,
        divides: op === 'avg',
        run: async (verbs, x, rank, size) => {
          const y = await verbs.reduce(x, { op, root: size - 1 });
          return rank === size - 1 ? same(y) : y;
        },
        joined: (xs) => same(reduced[op](xs)),
      },
    ]),
    {
      name: 'allReduce of a transposed tensor',
      shapeOf: cube,
      run: async (verbs, x) => same(await verbs.allReduce(x.permute([2, 0, 1]), { after: 'same' })),
      joined: (xs) => same(addUp(xs).permute([2, 0, 1])),
    },
    {
      name: 'allReduce of a number',
      shapeOf: () => [],
      run: async (verbs, x, rank) => own(await verbs.allReduce(x, { after: 'own' }), rank),
      joined: (xs, size) => everyOwn(size, () => addUp(xs)),
    },
    ...[0, -1].flatMap((place): Case[] => [
      {
        name: `broadcast from rank ${place}, after same`,
        shapeOf: cube,
        run: async (verbs, x, _, size) =>
          same(await verbs.broadcast(x, { root: (place + size) % size, after: 'same' })),
        joined: (xs) => same(xs.at(place)!),
      },
      {
        name: `broadcast from rank ${place}, after own`,
        shapeOf: cube,
        run: async (verbs, x, rank, size) =>
          own(await verbs.broadcast(x, { root: (place + size) % size, after: 'own' }), rank),
        joined: (xs, size) => everyOwn(size, () => xs.at(place)!),
      },
    ]),
    {
      name: 'enter and allReduce around a product of matrices',
      shapeOf: () => [3, 4],
      isShared: true,
      run: async (verbs, x, rank) => {
        const partial = verbs.enter(x).mul(rank + 1);
        return same(await verbs.allReduce(partial, { after: 'same' }));
      },
      joined: (xs, size) => same(addUp(ranksOf(size).map((rank) => xs[0]!.mul(rank + 1)))),
    },
  ];
}

function gathers(): Case[] {
  const lists = { even, uneven } as const;
  return [0, 1, -1].flatMap((dim) =>
    (['even', 'uneven'] as const).flatMap((list): Case[] => {
      const sizesOf = lists[list];
      const options = (size: number) => (list === 'even' ? { dim } : { dim, sizes: sizesOf(size) });
      const partShape = (rank: number, size: number) => along(dim, sizesOf(size)[rank]!);
      const wholeShape = (_: number, size: number) => along(dim, total(sizesOf(size)));
      const title = `along ${dim}, ${list}`;
      const root = 1;
      return [
        {
          name: `allGather ${title}, after same`,
          shapeOf: partShape,
          run: async (verbs, x, _, size) =>
            same(await verbs.allGather(x, { ...options(size), after: 'same' })),
          joined: (xs) => same(cat(xs, dim)),
        },
        {
          name: `allGather ${title}, after own`,
          shapeOf: partShape,
          run: async (verbs, x, rank, size) =>
            own(await verbs.allGather(x, { ...options(size), after: 'own' }), rank),
          joined: (xs, size) => everyOwn(size, () => cat(xs, dim)),
        },
        {
          name: `part ${title}, before same`,
          shapeOf: wholeShape,
          isShared: true,
          run: async (verbs, x, rank, size) => own(verbs.part(x, { ...options(size), before: 'same' }), rank),
          joined: (xs, size) => everyOwn(size, (rank) => partAlong(xs[0]!, dim, sizesOf(size), rank)),
        },
        {
          name: `part ${title}, before own`,
          shapeOf: wholeShape,
          isShared: true,
          run: async (verbs, x, rank, size) => {
            const entered = verbs.enter(x);
            const mine = verbs.part(entered, { ...options(size), before: 'own' });
            return own(mine, rank).add(own(entered, rank));
          },
          joined: (xs, size) =>
            everyOwn(size, (rank) => partAlong(xs[0]!, dim, sizesOf(size), rank)).add(
              everyOwn(size, () => xs[0]!),
            ),
        },
        ...(['sum', 'avg'] as const).map(
          (op): Case => ({
            name: `reduceScatter ${op} ${title}`,
            shapeOf: wholeShape,
            divides: op === 'avg',
            run: async (verbs, x, rank, size) =>
              own(await verbs.reduceScatter(x, { ...options(size), op }), rank),
            joined: (xs, size) =>
              everyOwn(size, (rank) => partAlong(reduced[op](xs), dim, sizesOf(size), rank)),
          }),
        ),
        {
          name: `gather ${title}`,
          shapeOf: partShape,
          run: async (verbs, x, rank, size) => {
            const y = await verbs.gather(x, { ...options(size), root });
            return rank === root ? same(y) : y;
          },
          joined: (xs) => same(cat(xs, dim)),
        },
        {
          name: `scatter ${title}`,
          shapeOf: (rank, size) => (rank === root ? wholeShape(rank, size) : partShape(rank, size)),
          run: async (verbs, x, rank, size) => own(await verbs.scatter(x, { ...options(size), root }), rank),
          joined: (xs, size) => everyOwn(size, (rank) => partAlong(xs[root]!, dim, sizesOf(size), rank)),
        },
      ];
    }),
  );
}

function exchanges(): Case[] {
  const pairs = [
    [0, 0],
    [0, 1],
    [1, 0],
    [2, 0],
    [-1, 1],
    [1, -1],
    [2, 2],
  ] as const;
  const index = (dim: number) => (dim < 0 ? dim + 3 : dim);
  /** The shape of a rank's tensor: `split` is cut by `cuts`, and `concat` has the rank's own length in `lengths`. */
  const shapeOf = (split: number, concat: number, cut: number, length: number) => {
    const shape = cube();
    shape[index(concat)] = length;
    shape[index(split)] = cut;
    return shape;
  };
  const joinedOf =
    (split: number, concat: number, cutsOf: (from: number, size: number) => readonly number[]) =>
    (xs: readonly Tensor[], size: number) =>
      everyOwn(size, (rank) =>
        cat(
          xs.map((x, from) => partAlong(x, split, cutsOf(from, size), rank)),
          concat,
        ),
      );
  /** Rank `from` sends this many rows to rank `to`. */
  const rows = (from: number, to: number) => (from + 2 * to) % 4;
  return [
    ...pairs.flatMap(([split, concat]): Case[] => [
      {
        name: `allToAll ${split} → ${concat}`,
        shapeOf: (_, size) => shapeOf(split, concat, 2 * size, split === concat ? 2 * size : 3),
        run: async (verbs, x, rank) => own(await verbs.allToAll(x, { split, concat }), rank),
        joined: joinedOf(split, concat, (_, size) => even(size)),
      },
    ]),
    ...pairs.slice(1, 6).map(
      ([split, concat]): Case => ({
        name: `allToAll ${split} → ${concat}, uneven`,
        shapeOf: (rank, size) => shapeOf(split, concat, total(uneven(size)), rank + 2),
        run: async (verbs, x, rank, size) => {
          const recvSizes = ranksOf(size).map((from) => from + 2);
          return own(await verbs.allToAll(x, { split, concat, sendSizes: uneven(size), recvSizes }), rank);
        },
        joined: joinedOf(split, concat, (_, size) => uneven(size)),
      }),
    ),
    {
      name: 'allToAll of rows, uneven between pairs',
      shapeOf: (rank, size) => [total(ranksOf(size).map((to) => rows(rank, to))), 3],
      run: async (verbs, x, rank, size) => {
        const sendSizes = ranksOf(size).map((to) => rows(rank, to));
        const recvSizes = ranksOf(size).map((from) => rows(from, rank));
        return own(await verbs.allToAll(x, { split: 0, concat: 0, sendSizes, recvSizes }), rank);
      },
      joined: joinedOf(0, 0, (from, size) => ranksOf(size).map((to) => rows(from, to))),
    },
  ];
}

const messages: Case[] = [
  {
    name: 'send and recv in a ring',
    shapeOf: cube,
    run: async (verbs, x, rank, size) => {
      const sent = await verbs.send(x, (rank + 1) % size, { tag: 3 });
      const like = x.detach();
      like.requiresGrad = true;
      const y = await verbs.recv(like, (rank + size - 1) % size, { tag: 3 });
      return own(y, rank).add(sent);
    },
    joined: (xs, size) => everyOwn(size, (rank) => xs[(rank + size - 1) % size]!),
  },
  {
    name: 'a pipeline',
    shapeOf: cube,
    run: async (verbs, x, rank, size) => {
      let h = x.mul(2);
      if (rank > 0) h = h.add(await verbs.recv(x, rank - 1));
      return rank < size - 1 ? await verbs.send(h, rank + 1) : same(h);
    },
    joined: (xs) => same(addUp(xs).mul(2)),
  },
];

export const cases: readonly Case[] = [...reductions(), ...gathers(), ...exchanges(), ...messages];

/** Returns the verbs in their plain or their Sync forms. */
function formOf(verbs: Across, isSync: boolean): Verbs {
  if (!isSync) return verbs;
  const sync = verbs as unknown as Record<string, (...args: unknown[]) => unknown>;
  return new Proxy(verbs, {
    get: (_, name: string) => (sync[`${name}Sync`] ?? sync[name])!.bind(verbs),
  }) as Verbs;
}

const bits = (x: Tensor): number[] => Array.from(x.to('float64').dataSync() as Float64Array);

/** Returns the gradients of this rank in all cases, and whether those of the two forms are equal. */
export async function gradients(rank: number, kind: Kind): Promise<[number[], boolean][]> {
  await using group = await init();
  const { size } = group;
  const verbs = across(group);
  const results: [number[], boolean][] = [];
  for (const each of cases) {
    const grads: number[][] = [];
    for (const isSync of [false, true]) {
      const x = inputOf(kind, each, rank, size);
      const loss = await each.run(formOf(verbs, isSync), x, rank, size);
      loss.backward();
      grads.push(bits(x.grad!));
    }
    results.push([grads[0]!, String(grads[0]) === String(grads[1])]);
  }
  return results;
}
