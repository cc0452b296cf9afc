// The texts of a chart's legend.

import { numberText } from '../format.js';

/** Returns the value as text: where it is no number, the curve's `bad` tells which one it is. */
export function valueText({ x, y, bad }, at) {
  if (at < 0) return '–';
  if (y[at] !== null) return numberText(y[at]);
  return bad.findLast(({ from, isOpen }) => isOpen || from <= x[at])?.value ?? '–';
}

/** Names a curve: by its data set, or by the metric if there is no other set, or another curve of this set. */
export function labelOf({ run, set, name }, all) {
  const own = all.filter((each) => each.run === run);
  const isOnlySet = all.every((each) => each.set === set);
  const isOnlyOne = own.filter((each) => each.set === set).length === 1;
  const label = isOnlyOne && !(isOnlySet && set === 'train') ? set : name;
  return run === 'other' ? `${label}, other run` : label;
}
