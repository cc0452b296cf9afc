// Provides the text to learn from: a file, or generated sentences with a simple grammar, the same in every run.
import { readFileSync } from 'node:fs';
import { generator, randint } from '@ringwise/tensor';

const words = [
  ['The', 'A', 'One', 'Every', 'My', 'Our', 'This', 'That'],
  ['small', 'old', 'brave', 'quiet', 'yellow', 'clever', 'tired', 'happy'],
  ['fox', 'sailor', 'king', 'baker', 'river', 'child', 'owl', 'neighbour'],
  ['sees', 'follows', 'paints', 'remembers', 'likes', 'carries', 'hears', 'finds'],
  ['the moon', 'a boat', 'two apples', 'the garden', 'a letter', 'the road', 'a song', 'the sea'],
];

/** Generates `count` sentences, one per line, each with one phrase from each of the five lists. */
function sentences(count: number): string {
  const choices = randint(0, 8, [count, words.length], {
    generator: generator(1),
  }).dataSync() as BigInt64Array;
  return Array.from({ length: count }, (_, i) => {
    const parts = words.map((part, j) => part[Number(choices[i * words.length + j])]);
    return `${parts.join(' ')}.\n`;
  }).join('');
}

/** Returns the text in `file`, or, without a file, generated sentences. */
export const textFrom = (file: string | undefined): string =>
  file === undefined ? sentences(4000) : readFileSync(file, 'utf8');
