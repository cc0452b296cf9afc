// Cases that are the same for every seed: earlier bugs, and one case for each row of the table of differences.
import { arrays } from './arrays.ts';
import { elementwise } from './elementwise.ts';
import { layers } from './layers.ts';
import type { Cases } from './makers.ts';
import { reductions } from './reductions.ts';

export const given: Cases = { ...elementwise, ...reductions, ...layers, ...arrays };
