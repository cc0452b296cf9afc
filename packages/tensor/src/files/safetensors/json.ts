// Checks of a JSON text that JSON.parse does not make: it keeps the last of two members of one name without a word, and
// takes any depth, in which every bracket costs far more memory than its byte.

/** What is wrong with the text, as the end of a sentence. */
export class JsonProblem extends Error {}

const quote = 0x22;
const backslash = 0x5c;

/** Where the string that begins at `begin` has its closing quote. The text's length if it has none. */
function stringEnd(text: string, begin: number): number {
  for (let at = text.indexOf('"', begin + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === backslash) escapes++;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

/** The first place from `at` on that is no white space. */
function pastSpace(text: string, at: number): number {
  let next = at;
  while (' \t\r\n'.includes(text[next] ?? '-')) next++;
  return next;
}

/** The value of a text that must not be deeper than `mostDepth`, nor have a name twice in one object. */
export function parseJson(text: string, mostDepth: number): unknown {
  checkMembers(text, mostDepth);
  return JSON.parse(text);
}

/** What is no JSON passes: JSON.parse says it better. */
function checkMembers(text: string, mostDepth: number): void {
  /** The names so far, of each object and list that is open. */
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
      if (names?.has(name)) throw new JsonProblem(`it has ${JSON.stringify(name.slice(0, 80))} twice`);
      names?.add(name);
    }
    at = end;
  }
}
