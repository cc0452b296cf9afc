// Makes the pictures of the live page in docs/images, from real runs in Chromium: node scripts/docs/pictures.mjs
// Needs the built packages and addons, and Chromium or Chrome in PATH.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sharp from 'sharp';
import { root } from '../run.mjs';

const { chromium } = createRequire(`${root}/packages/launch/package.json`)('playwright-core');
const images = `${root}/docs/images`;

/** What is shown: the arguments of the training, when the picture is taken, and its height; null for the whole page. */
const pictures = {
  'live-page': { args: [], isTime: `document.querySelectorAll('#log div').length >= 3`, height: null },
  'live-page-failed': {
    args: ['--spoil', '200'],
    isTime: `document.getElementById('state').textContent === 'failed'`,
    height: 760,
  },
};

/** Starts the training with --ui-keep and resolves with the process and the address of its page. */
async function started(args) {
  const command = ['run', '--ui-keep', '-n', '2', '--local-addr', 'host-1', 'train.mjs', ...args];
  const child = spawn(process.execPath, [`${root}/packages/launch/bin/ringwise.js`, ...command], {
    cwd: fileURLToPath(new URL('pictures/', import.meta.url)),
  });
  child.stdout.resume();
  let said = '';
  const address = await new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the training did not start: ${said}`)));
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said += text;
      const found = /live page at (http\S+)\n/.exec(said);
      if (found) resolve(found[1]);
    });
  });
  return { child, address };
}

async function waitFor(page, expression) {
  const endMs = performance.now() + 120_000;
  while (!(await page.evaluate(expression))) {
    if (performance.now() > endMs) throw new Error(`${expression}: not within 120 s`);
    await page.waitForTimeout(50);
  }
}

const executablePath = process.env.PATH.split(delimiter)
  .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
  .find((file) => existsSync(file));
if (!executablePath)
  throw new Error('pictures: no chromium, chromium-browser or google-chrome in PATH. Install one.');
mkdirSync(images, { recursive: true });
const browser = await chromium.launch({
  executablePath,
  args: ['--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
});
try {
  for (const [name, { args, isTime, height }] of Object.entries(pictures)) {
    const { child, address } = await started(args);
    const ended = once(child, 'exit');
    try {
      const viewport = { width: 1280, height: height ?? 900 };
      const page = await browser.newPage({ viewport, deviceScaleFactor: 1.5 });
      await page.goto(address);
      await waitFor(page, isTime);
      // Both pictures show the same moment: no message arrives between them, or the job has ended.
      await page.context().setOffline(true);
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        const picture = await page.screenshot({ fullPage: height === null });
        const file = `${images}/${name}-${colorScheme}.png`;
        await sharp(picture).png({ palette: true, quality: 90, effort: 10 }).toFile(file);
        console.log(file);
      }
      await page.close();
    } finally {
      child.kill('SIGINT');
      await ended;
    }
  }
} finally {
  await browser.close();
}
