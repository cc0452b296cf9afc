// Parses JSON with two checks that JSON.parse does not make. JSON.parse silently keeps the last of two members of the
// same name, and accepts any depth, although every bracket costs far more memory than one byte.

import { quoted } from './text.ts';

/** A fault in a text. The message is the end of a sentence about the text. */
export class JsonProblem extends Error {}

const quote = 0x22;
const backslash = 0x5c;

/**
 * Returns the index of the closing quote of the string that starts at `begin`, or the text's length if there
 * is none.
 */
function stringEnd(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/** Returns the first index from `at` on that is not whitespace. */
function pastSpace(text: string, at: number): number {
  let next = at;
  while (' \t\r\n'.includes(text[next] ?? '-')) next++;
  return next;
}

/**
 * Parses a text. Throws JsonProblem if objects and lists are nested more than `mostDepth` deep or an object has a name
 * twice, and SyntaxError if the text is not JSON.
 */
export function parseJson(text: string, mostDepth: number): unknown {
  checkMembers(text, mostDepth);
  return JSON.parse(text);
}

/** Checks members and depth. Leaves the report of most invalid JSON to JSON.parse, which tells the position. */
function checkMembers(text: string, mostDepth: number): void {
  /** Names seen so far in each open object; an empty set for each open list. */
  const open: Set<string>[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === 0x7b || char === 0x5b) {
      if (open.length === mostDepth) throw new JsonProblem(`it is nested more than ${mostDepth} deep`);
      open.push(new Set());
    } else if (char === 0x7d || char === 0x5d) open.pop();
    if (char !== quote) continue;
    const end = stringEnd(text, at);
    if (text[pastSpace(text, end + 1)] === ':') {
      const name = JSON.parse(text.slice(at, end + 1)) as string; // "a" and "\u0061" are one name
      const names = open.at(-1);
      if (names?.has(name)) throw new JsonProblem(`it has ${quoted(name)} twice`);
      names?.add(name);
    }
    at = end;
  }
}
