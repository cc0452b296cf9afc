// Finds the pages of the documentation, and reads code blocks and tables from them.
import { readFileSync } from 'node:fs';
import { sources } from '../checks/sources.mjs';

/** Returns the paths of all pages: every tracked Markdown file but those that tools write. */
export const pagePaths = () => sources('*.md').filter((path) => !path.endsWith('CHANGELOG.md'));

/** Returns the text of a page with \n as the end of lines. */
export const readPage = (path) => readFileSync(path, 'utf8').replaceAll('\r\n', '\n');

/**
 * Returns the fenced code blocks: language, the other words of the fence, text, and line of the first line of text.
 * `given` are declarations that the block needs and readers do not: a comment `<!-- given: … -->` above the block.
 */
export function blocksOf(text) {
  const blocks = [];
  let open = null;
  const lines = text.split('\n');
  for (const [index, line] of lines.entries()) {
    const fence = /^(\s*)(```+)(.*)$/.exec(line);
    if (open === null && fence) {
      const [language = '', ...marks] = fence[3].trim().split(/\s+/);
      open = {
        fence: fence[2],
        language,
        marks,
        line: index + 2,
        lines: [],
        given: givenAbove(lines, index),
      };
    } else if (open !== null && fence?.[2] === open.fence && fence[3].trim() === '') {
      const { lines: code, ...rest } = open;
      blocks.push({ ...rest, text: code.join('\n') });
      open = null;
    } else open?.lines.push(line);
  }
  return blocks;
}

/**
 * Returns the `ts` blocks of the doc comments of a source file, as blocksOf() does, the comments' stars removed. They
 * are shown in editors and in the reference.
 */
export function exampleBlocks(text) {
  const lines = text
    .split('\n')
    .map((line) => (/^\s*\*( |$)/.test(line) ? line.replace(/^\s*\* ?/, '') : ''));
  return blocksOf(lines.join('\n')).filter(({ language }) => language === 'ts');
}

/** Returns the declarations of the comment above the line `index`, an empty line between them allowed. */
function givenAbove(lines, index) {
  const above = lines[index - 1]?.trim() === '' ? lines[index - 2] : lines[index - 1];
  return /^<!-- given: (.*) -->$/.exec(above ?? '')?.[1] ?? '';
}

/** Returns the text with the lines of code blocks emptied, so that line numbers stay. */
export function withoutBlocks(text) {
  let fence = null;
  return text
    .split('\n')
    .map((line) => {
      const marks = /^\s*(```+)/.exec(line)?.[1];
      if (fence === null) {
        fence = marks ?? null;
        return marks ? '' : line;
      }
      if (marks === fence) fence = null;
      return '';
    })
    .join('\n');
}

/** Returns the cells of a row of a table. A pipe in a cell is written \|. */
const cellsOf = (line) =>
  line
    .slice(1, line.lastIndexOf('|'))
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

/** Returns the code spans of the column `heading` of all tables that have one: their text and line. */
export function spansOfColumn(text, heading) {
  const spans = [];
  let column = -1;
  for (const [index, line] of withoutBlocks(text).split('\n').entries()) {
    if (!line.startsWith('|')) {
      column = -1;
      continue;
    }
    const cells = cellsOf(line);
    if (column === -1) {
      column = cells.indexOf(heading);
      if (column === -1) column = -2;
    } else if (column >= 0) {
      for (const [, code] of (cells[column] ?? '').matchAll(/`([^`]+)`/g))
        spans.push({ code, line: index + 1 });
    }
  }
  return spans;
}
