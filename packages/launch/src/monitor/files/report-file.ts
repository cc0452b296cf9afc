// The report of a run: the live page in one HTML file, with the data that it shows. The file is replaced by a rename,
// so that a reader never reads half of it.

import { existsSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '@ringwise/store';
import { badArgument } from '../../errors.ts';
import type { Message } from '../feed.ts';
import { pageFiles } from '../page-files.ts';

/** Milliseconds between two reports: the maximum age of the report that a killed launcher leaves. */
const everyMs = 30_000;

/** Forbids every request, so that the report shows the same wherever it is opened. */
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

export interface ReportFile {
  /** Writes the final report. Tells the user, instead of throwing, if that fails. */
  readonly close: () => void;
}

/**
 * Writes a first report, and later ones, of the state that `whole` returns. Throws ERR_LAUNCH_ARGUMENT if the file
 * cannot be written.
 */
export function openReport(path: string, whole: () => Message, say: (text: string) => void): ReportFile {
  let file = path;
  try {
    makeFolder(dirname(path));
    file = writablePath(path);
    write(file, whole());
  } catch (cause) {
    throw badArgument('ringwise run', '--report', 'a file that it may write', path, cause);
  }
  const attempt = () => {
    try {
      write(file, whole());
    } catch (error) {
      say(`--report: ${(error as Error).message}; the file is not up to date.`);
    }
  };
  const timer = setInterval(attempt, everyMs);
  return {
    close: () => {
      clearInterval(timer);
      attempt();
    },
  };
}

/**
 * Returns the target of a symbolic link, so that the link stays, or the path itself. Throws for anything but a regular
 * file, such as a device.
 */
function writablePath(path: string): string {
  if (!existsSync(path)) return path;
  const file = realpathSync(path);
  if (!statSync(file).isFile()) throw new Error(`${path} is no regular file`);
  return file;
}

function write(path: string, message: Message): void {
  const part = `${path}.part`;
  try {
    writeFileSync(part, reportHtml(message));
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

/** Returns the page with its style, its code and `message` inside. */
export function reportHtml(message: Message): string {
  const files = pageFiles();
  const textOf = (name: string) => `${files.get(name)!.content}`;
  // JSON may escape "<", so that no text of a program can close the script element.
  const data = JSON.stringify(message).replaceAll('<', '\\u003c');
  const style = `<meta http-equiv="Content-Security-Policy" content="${policy}" />\n<style>${textOf('style.css')}</style>`;
  const script = `<script id="recorded" type="application/json">${data}</script>\n<script>${textOf('page.js')}</script>`;
  return textOf('')
    .replace('<link rel="stylesheet" href="style.css" />', () => style)
    .replace('<script src="page.js"></script>', () => script);
}
