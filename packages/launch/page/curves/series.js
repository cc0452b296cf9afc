// What is drawn of a curve: the chart and the data set that its name means, its smoothed values, and its values that
// are not numbers.

const sets = {
  train: 'train',
  training: 'train',
  val: 'validation',
  valid: 'validation',
  validation: 'validation',
  eval: 'validation',
  test: 'test',
};
const words = Object.keys(sets).join('|');
const capitals = Object.keys(sets)
  .map((word) => word[0].toUpperCase() + word.slice(1))
  .join('|');
/** valLoss, val_loss, val/loss, loss_val, lossVal. */
const forms = [
  [new RegExp(`^(${words})[/_. -]+(.+)$`, 'i'), 1, 2],
  [new RegExp(`^(${words})([A-Z].*)$`), 1, 2],
  [new RegExp(`^(.+?)[/_. -]+(${words})$`, 'i'), 2, 1],
  [new RegExp(`^(.*[a-z\\d])(${capitals})$`), 2, 1],
];

/** Returns the chart of a metric, and its data set there: valLoss belongs to the validation set of loss. */
export function placeOf(name) {
  for (const [form, set, chart] of forms) {
    const match = form.exec(name);
    if (!match) continue;
    const rest = match[chart];
    return { chart: rest[0].toLowerCase() + rest.slice(1), set: sets[match[set].toLowerCase()] };
  }
  return { chart: name, set: 'train' };
}

/** Returns the exponential moving average, without a bias to the first value. Gaps (null) stay gaps. */
export function smoothed(values, weight) {
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + 1 - weight;
    return sum / share;
  });
}

/** Describes the last values that were not numbers, such as "NaN since step 61, first on rank 1"; null without any. */
export function badText(runs, unit = 'step') {
  const run = runs.at(-1);
  if (!run) return null;
  const value = run.value.replace('Infinity', 'infinity');
  const first = `first on rank ${run.rank}`;
  if (run.isOpen) return `${value} since ${unit} ${run.from.toLocaleString('en')}, ${first}`;
  const [from, to] = [run.from, run.to].map((step) => step.toLocaleString('en'));
  const more = runs.length > 1 ? `; in ${runs.length} places` : '';
  return `${value} ${from === to ? `at ${unit} ${from}` : `from ${unit} ${from} to ${to}`}, ${first}${more}`;
}
