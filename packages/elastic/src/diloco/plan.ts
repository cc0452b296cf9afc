// Plans which parameters are averaged together, and in which steps. Pure functions with the same result on every rank.
// "Streaming DiLoCo with overlapping communication" (Douillard et al., 2025, arXiv 2501.18512).

/** The facts about a parameter that the plan depends on. */
export interface PlanParam {
  readonly name: string;
  /** Elements. */
  readonly count: number;
}

/**
 * Divides parameters into `fragments` lists of consecutive positions, of about equally many elements. The parameters
 * of one layer, whose names are equal up to the last dot, stay together. Returns null if there are fewer layers than
 * fragments.
 */
export function planFragments(params: readonly PlanParam[], fragments: number): number[][] | null {
  const layers = layersOf(params);
  if (layers.length < fragments) return null;
  const plan: number[][] = [];
  let left = params.reduce((sum, { count }) => sum + count, 0);
  let next = 0;
  for (let f = 0; f < fragments; f++) {
    const target = left / (fragments - f);
    const lastPossible = layers.length - (fragments - f - 1);
    let size = layers[next]!.count;
    const positions = [...layers[next++]!.positions];
    // A layer across the target size belongs to the fragment that contains more of it.
    while (next < lastPossible && size + layers[next]!.count / 2 <= target) {
      size += layers[next]!.count;
      positions.push(...layers[next++]!.positions);
    }
    if (f === fragments - 1) for (; next < layers.length; next++) positions.push(...layers[next]!.positions);
    else left -= size;
    plan.push(positions);
  }
  return plan;
}

/** Returns the number of layers, which is the largest number of fragments. */
export const countLayers = (params: readonly PlanParam[]): number => layersOf(params).length;

function layersOf(params: readonly PlanParam[]): { positions: number[]; count: number }[] {
  const layers: { name: string; positions: number[]; count: number }[] = [];
  for (const [position, { name, count }] of params.entries()) {
    const layer = name.slice(0, Math.max(0, name.lastIndexOf('.')));
    const last = layers.at(-1);
    if (last?.name === layer && layer !== '') {
      last.positions.push(position);
      last.count += count;
    } else layers.push({ name: layer, positions: [position], count });
  }
  return layers;
}

/**
 * Returns the fragments whose average starts at the end of inner step number `step`, counted from 1, in order. Each
 * fragment is due once in `every` steps, at an offset of its own; the last one is due at the end of the round.
 */
export function fragmentsAt(step: number, every: number, fragments: number): number[] {
  return Array.from({ length: fragments }, (_, f) => f).filter(
    (f) => (step - Math.round(((f + 1) * every) / fragments)) % every === 0,
  );
}
