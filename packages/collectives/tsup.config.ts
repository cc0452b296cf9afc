import { defineConfig } from 'tsup';
import { library } from '../../tsup.base.ts';

export default defineConfig(
  library(
    {
      index: 'src/index.ts',
      testing: 'contract/index.ts',
      bench: 'bench/command.ts',
      flight: 'src/commands/flight.ts',
      plan: 'planner/command.ts',
      doctor: 'src/commands/doctor.ts',
      'doctor-rank': 'src/commands/doctor-rank.ts',
      'bench-rank': 'bench/rank.ts',
    },
    { core: 'src/index.ts' },
  ),
);
