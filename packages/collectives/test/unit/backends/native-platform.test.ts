// Tests that the addon of this platform is looked for: of the C library that this process has, not of another one that
// lies on the host too.
import { expect, it } from 'vitest';
import { findAddon, platformOf, thisHost } from '../../../src/backends/find-addon.ts';

it('looks for the package of the C library that runs this process', () => {
  const { tried } = findAddon('absent', '@ringwise/collectives');
  expect(tried).toEqual([
    expect.stringContaining(`@ringwise/collectives-${platformOf(thisHost())}/absent.node (`),
  ]);
});

it('leaves the settings of reports and stacks as they were', () => {
  const { stackTraceLimit } = Error;
  thisHost();
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  expect((process.report as unknown as { excludeNetwork: boolean }).excludeNetwork).toBe(false);
});
