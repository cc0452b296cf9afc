import { expect, test } from 'vitest';
import { faultsOf } from '../../checks/words.mjs';

test('retired words and wide comments are found, with their place', () => {
  const wide = `  // ${'x'.repeat(120)}`;
  const text = [
    '// The lane greets its peers.',
    wide,
    `const text = '${'x'.repeat(120)}';`,
    '/* a handshake */',
  ].join('\n');
  expect(faultsOf('native/a.cc', text)).toEqual([
    'native/a.cc:1 says "greets"; the term is: handshake',
    'native/a.cc:2 has a comment of more than 120 columns',
  ]);
});

test('addresses and Markdown may be wide, and parts of words are no words', () => {
  const address = `// https://example.org/${'x'.repeat(120)}`;
  expect(faultsOf('a.ts', address)).toEqual([]);
  expect(faultsOf('a.md', `* ${'x'.repeat(130)}`)).toEqual([]);
  expect(faultsOf('a.ts', '// A snapshot of the conjunction; agreeting')).toEqual([]);
});

test('a source file of more than 600 lines is a fault, and a Markdown file is not', () => {
  const full = 'let x;\n'.repeat(600);
  expect(faultsOf('a.ts', full)).toEqual([]);
  expect(faultsOf('a.ts', `${full}let x;`)).toEqual(['a.ts has 601 lines; the most is 600: split it']);
  expect(faultsOf('a.md', `${full}text\n`)).toEqual([]);
});
