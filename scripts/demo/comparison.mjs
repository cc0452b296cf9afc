// Compares the run on one rank with that on two: how many times as fast, and whether both learned the same.

/**
 * Largest relative difference of the final losses that counts as rounding. Two ranks sum the gradients of a batch in
 * another order than one does, and each step adds to the difference; a wrong average differs by far more.
 */
const rounding = 1e-3;

const others = (load) => `Other programs may use the cores: the load is ${load.toFixed(1)}.`;

/** Returns the text of the comparison, and its numbers. `load` is the mean number of running programs in a minute. */
export function comparison([one, two], { cores, load }) {
  const ratio = one.seconds / two.seconds;
  const difference = Math.abs(two.loss - one.loss) / one.loss;
  const isEqual = difference <= rounding;
  const row = (name, { seconds, samples, loss }) =>
    `${name}  ${seconds.toFixed(2).padStart(6)} s  ${String(Math.round(samples / seconds)).padStart(6)} samples/s` +
    `  final loss ${loss.toFixed(4)}`;
  const times = `${ratio.toFixed(2)} times as fast as one, measured just now on ${cores} ${cores === 1 ? 'core' : 'cores'}`;
  const lines = [
    row('1 rank ', one),
    row('2 ranks', two),
    ratio > 1
      ? `Two ranks are ${times}.`
      : `Two ranks are not faster this time: ${times}. ${cores < 2 ? 'They share one core.' : others(load)}`,
    isEqual
      ? 'Both have the same final loss, up to rounding: two ranks take the same steps as one, on half the samples each.'
      : `The final losses differ by ${(100 * difference).toFixed(2)} %, which is more than rounding explains.`,
  ];
  return { lines, ratio, difference, isEqual };
}
