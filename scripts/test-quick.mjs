// `npm run test:quick`: runs the tests in test/unit, isolated and processes of all packages.
import { selectionOf } from './parts.mjs';
import { vitest } from './vitest.mjs';

process.exit(await vitest(selectionOf('quick').projects));
