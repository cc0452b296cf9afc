// Reports of real runs, opened as files, and the comparison of two.

import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freePort } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../../../src/monitor/feed.ts';
import { describeInBrowser, open, picture, pixelsOf, texts, withBrowser } from '../../../support/browser.ts';
import { finished, ringwise, script, until } from '../../../support/command.ts';
import { training } from '../../../support/training.ts';

async function reported(name: string, loss: string, after = '') {
  const file = script(`${name}.mjs`, training({ steps: 30, loss, after }));
  const report = join(dirname(file), 'reports', `${name}.html`);
  const { exitCode } = await finished(['run', '--report', report, '--nproc-per-node', '2', file]);
  return { report, exitCode, url: pathToFileURL(report).href };
}

describe('--report', () => {
  it('writes one file, which no text of a program can break', async () => {
    const { report, exitCode } = await reported('train', '1', `console.log('</script><h1 id=evil>');`);
    expect(exitCode).toBe(0);
    const html = readFileSync(report, 'utf8');
    // Not as matchers, which would print the file.
    expect(html.includes('</script><h1')).toBe(false);
    expect(/(?:src|href)="(?!data:)/.test(html)).toBe(false);
    expect(html.includes('Leon Sorokin')).toBe(true); // the licence of uPlot
    expect(existsSync(`${report}.part`)).toBe(false);
  });

  it('names a path where it cannot write, before it starts a rank', async () => {
    const file = script('train.mjs', `console.log('started');`);
    const folder = join(dirname(file), 'folder');
    mkdirSync(folder);
    const { exitCode, stdout, stderr } = await finished(['run', '--report', folder, file]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--report');
    expect(stderr).toContain(folder);
    expect(stdout).toBe('');
  });

  it('writes behind a link, and refuses what is no regular file', async () => {
    const file = script('train.mjs', `console.log('started');`);
    const [link, target, pipe] = ['link.html', 'target.html', 'pipe'].map((name) =>
      join(dirname(file), name),
    );
    writeFileSync(target!, '');
    symlinkSync(target!, link!);
    expect((await finished(['run', '--report', link!, file])).exitCode).toBe(0);
    expect(lstatSync(link!).isSymbolicLink()).toBe(true);
    expect(readFileSync(target!, 'utf8').startsWith('<!doctype html>')).toBe(true);
    execFileSync('mkfifo', [pipe!]);
    const { exitCode, stderr } = await finished(['run', '--report', pipe!, file]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--report expects a file that it may write');
    expect(lstatSync(pipe!).isFIFO()).toBe(true);
  });

  it('tells of a run that the user ended, and stays when the launcher is killed', async () => {
    const file = script('train.mjs', training({ steps: 10_000 }));
    const report = join(dirname(file), 'run.html');
    const ends = { SIGINT: '"exitCode":130', SIGKILL: '"end":null' } as const;
    for (const [signal, text] of Object.entries(ends)) {
      const command = ringwise(['run', '--report', report, file]);
      await until('a step', () => command.out.stdout.includes('step 0'));
      command.child.kill(signal as NodeJS.Signals);
      await command.exitCode;
      expect(readFileSync(report, 'utf8').includes(text), signal).toBe(true);
    }
  });
});

describe('--report on several hosts', () => {
  it('is written on the host with the store, and names the rank of another host that failed', async () => {
    const port = await freePort();
    const file = script(
      'train.mjs',
      training({ steps: 3, after: `if (rank === 1) throw new Error('no disk');` }),
    );
    const at = (name: string) => join(dirname(file), name);
    const host = (nodeRank: number, name: string) => {
      const where = ['--nnodes', '2', '--node-rank', `${nodeRank}`, '--master-port', `${port}`];
      const words = ['run', ...where, '--local-addr', name, '--report', at(`${name}.html`), file];
      return ringwise(words, { RINGWISE_SECRET: 'shared by both' });
    };
    const commands = [host(0, 'with-store'), host(1, 'other')];
    expect(await Promise.all(commands.map(({ exitCode }) => exitCode))).toEqual([1, 1]);
    expect(existsSync(at('other.html'))).toBe(false);
    const [, data] = /<script id="recorded" type="application\/json">([^<]*)</.exec(
      readFileSync(at('with-store.html'), 'utf8'),
    )!;
    const { job, ranks } = JSON.parse(data!) as Message;
    expect(job.end!.culprit).toEqual({
      rank: 1,
      host: 'other',
      ending: 'exit code 1',
      error: 'Error: no disk',
      at: expect.stringMatching(/^train\.mjs:\d+$/),
    });
    expect(ranks.map(({ rank, host: name, step }) => [rank, name, step])).toEqual([
      [0, 'with-store', 2],
      [1, 'other', 2],
    ]);
  });
});

describeInBrowser('a report in a browser', () => {
  withBrowser();

  it('shows the run from the file, without any request', async () => {
    const { url, exitCode } = await reported(
      'fails',
      '2 / (step + 1)',
      `if (rank === 1) throw new Error('no <b>disk</b>');`,
    );
    expect(exitCode).toBe(1);
    const { page, problems } = await open(url);
    expect(await page.textContent('#state')).toBe('failed');
    expect(await page.textContent('#notice strong')).toBe('Rank 1 failed: Error: no <b>disk</b>');
    expect(await page.textContent('[data-name=loss] .series .validation')).toMatch(/^validation\d/);
    expect(await page.locator('#ranks tr').count()).toBe(2);
    expect(await page.textContent('#log')).toContain('step 20');
    expect(await page.evaluate(pixelsOf('backward'))).toBeGreaterThan(20);
    expect(problems).toEqual([]);
    await picture(page, 'report');
  });

  it('is compared with another one that is chosen or dropped there', async () => {
    // A name that every object has.
    const first = await reported('first', '2 / (step + 1)', 'reportMetrics({ step: 30, constructor: 3 });');
    const second = await reported('second', 'step > 20 ? NaN : 5');
    const { page, problems } = await open(first.url);
    const charts = await page.locator('.curve').count();
    await page.setInputFiles('#compare-file', second.report);
    await page.waitForSelector('#compare-rows tr');
    const rowOf = (name: string) => texts(page, `#compare-rows tr:has(th:text-is("${name}")) td`);
    expect(await rowOf('last loss')).toEqual([expect.stringMatching(/^0\.06667$/), 'NaN']);
    expect(await rowOf('lowest loss')).toEqual(['0.06667', '5']);
    expect(await texts(page, '[data-name=loss] .series li')).toEqual([
      'train0.06667',
      expect.stringMatching(/^validation\d/),
      'train, other runNaN',
      expect.stringMatching(/^validation, other run\d/),
    ]);
    expect(await page.locator('.curve').count()).toBe(charts);
    expect(await page.textContent('[data-name=constructor] .series')).toBe('constructor3');
    expect(await rowOf('last constructor')).toEqual(['3', '–']);
    expect(await page.locator('#alerts').isVisible()).toBe(false); // this run is well
    await picture(page, 'compared');

    await page.click('#compare-end');
    expect(await page.locator('#compare').isVisible()).toBe(false);
    expect((await texts(page, '[data-name=loss] .series li')).length).toBe(2);

    const drop = (text: string, name: string) =>
      page.evaluate(`(() => {
        const data = new DataTransfer();
        data.items.add(new File([${JSON.stringify(text)}], '${name}'));
        document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
      })()`);
    await drop('<h1>no report</h1>', 'other.html');
    await page.waitForSelector('#compare-message:not(:empty)');
    expect(await page.textContent('#compare-message')).toBe(
      'other.html: This file is no report of a run. ringwise run --report FILE writes one.',
    );
    expect(await page.locator('#compare').isVisible()).toBe(false);
    await drop(readFileSync(second.report, 'utf8'), 'second.html');
    await page.waitForSelector('#compare-rows tr:visible');
    expect(await page.textContent('#compare-message')).toBe('');
    expect(problems).toEqual([]);
  });
});
