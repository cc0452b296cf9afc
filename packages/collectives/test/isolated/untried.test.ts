// What the addon is not used for on a system on which it has not been run.
import { expect, it, onTestFinished } from 'vitest';
import { findBackend } from '../../src/backends/registry.ts';
import { whyUntried } from '../../src/backends/untried.ts';
import { examine } from '../../src/commands/doctor.ts';
import { nativeKernels } from '../../src/reproducible/kernels.ts';

function fake(platform: NodeJS.Platform): void {
  const real = process.platform;
  Object.defineProperty(process, 'platform', { value: platform });
  onTestFinished(() => {
    Object.defineProperty(process, 'platform', { value: real });
  });
}

async function addonInDoctor() {
  const spawn = () => Promise.reject(new Error('no ranks here'));
  for await (const finding of examine({ spawn })) if (finding.name === 'coll.node') return finding;
  return undefined;
}

it('says why on macOS, and nothing elsewhere', async () => {
  expect(whyUntried()).toBeNull();
  expect(nativeKernels()).not.toBeNull();
  fake('darwin');
  expect(whyUntried()!.message).toContain('is built for macOS and has not been run there yet');
  expect(whyUntried()!.next).toContain('RINGWISE_BACKEND=host');
  expect(nativeKernels()).toBeNull();
});

it('is tcp for auto, which says why', async () => {
  fake('darwin');
  const { name, fallback } = await findBackend('auto');
  expect([name, fallback?.code]).toEqual(['tcp', 'ERR_COLL_INIT']);
});

it('is a note of doctor, unless the addon is asked for', async () => {
  fake('darwin');
  const note = await addonInDoctor();
  expect(note).toMatchObject({ state: 'note', fix: 'RINGWISE_BACKEND=host uses it anyway.' });
  expect(note!.text).toMatch(/has not been run there yet; ranks use the tcp backend$/);
  const before = process.env.RINGWISE_BACKEND;
  process.env.RINGWISE_BACKEND = 'host';
  onTestFinished(() => {
    if (before === undefined) delete process.env.RINGWISE_BACKEND;
    else process.env.RINGWISE_BACKEND = before;
  });
  // It is looked for now, and there is none.
  expect((await addonInDoctor())!.text).toContain('no native addon for darwin-');
});
