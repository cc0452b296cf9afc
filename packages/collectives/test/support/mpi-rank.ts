// The program of a rank of mpi.test.ts, which mpirun starts. Its argument is the port of a store; it runs the scenarios
// that the test puts there.

import { init } from '../../src/index.ts';
import { detectLauncher } from '../../src/init/env.ts';
import { serve } from './serve.ts';

const launched = detectLauncher(process.env);
if (launched === null) throw new Error('mpi-rank.ts: expected to be started by mpirun');
const timeoutMs = 20_000;
await serve(launched.rank, Number(process.argv[2]), (store) => init({ backend: 'mpi', store, timeoutMs }));
