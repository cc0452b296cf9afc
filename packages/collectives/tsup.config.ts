import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library({
    index: 'src/index.ts',
    testing: 'src/testing.ts',
    bench: 'src/bench.ts',
    flight: 'src/flight.ts',
    doctor: 'src/doctor.ts',
    'doctor-rank': 'src/doctor-rank.ts',
    'bench-rank': 'src/bench/rank.ts',
  }),
);
