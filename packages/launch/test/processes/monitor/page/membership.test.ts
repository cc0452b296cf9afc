// The live page of an elastic job shows how its membership changes.

import { expect, it } from 'vitest';
import {
  axeViolations,
  describeInBrowser,
  openLive,
  texts,
  until,
  withBrowser,
} from '../../../support/browser.ts';
import { ringwise, script } from '../../../support/command.ts';
import { elasticProgram } from '../../../support/elastic-program.ts';

describeInBrowser('the live page of an elastic job', () => {
  withBrowser();

  it('shows who was lost, left and joined, and has metrics of it', async () => {
    const command = ringwise(['run', '--elastic', '--ui', '-n', '3', script('train.mjs', elasticProgram())]);
    const { page, problems } = await openLive(command);
    await until(page, `document.querySelectorAll('#views tr').length === 1`);
    expect(await page.textContent('#membership-sentence')).toBe(
      '3 of 3 ranks train; so far 0 were lost, 0 left and 0 joined.',
    );
    const pidOf = (slot: number) =>
      Number(new RegExp(`pid (\\d+) slot ${slot} `).exec(command.out.stdout)![1]);
    process.kill(pidOf(1), 'SIGKILL');
    await until(page, `/1 were lost, 0 left and 1 joined/.test(document.body.textContent)`);
    process.kill(pidOf(2), 'SIGTERM');
    await until(page, `/1 were lost, 1 left and 1 joined/.test(document.body.textContent)`);
    expect(await page.textContent('#membership-sentence')).toMatch(/^2 of 3 ranks train/);
    const [latest] = await texts(page, '#views tr');
    expect(latest).toMatch(/–2–$/); // lost, left, joined
    const text = await (await fetch(`${page.url()}metrics`)).text();
    expect(text).toContain('ringwise_members 2\n');
    for (const change of ['lost', 'left', 'joined']) {
      expect(text).toContain(`ringwise_changes_total{change="${change}"} 1\n`);
    }
    expect(await axeViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});
