import { expect, it } from 'vitest';
import { parseJson } from '../../src/index.ts';

it('parses what JSON.parse does', () => {
  const value = { a: [1, { b: 'c"d\\' }], 'e:': null, f: '{[', '': true };
  expect(parseJson(JSON.stringify(value, null, 1), 3)).toEqual(value);
  expect(() => parseJson('{', 3)).toThrow(SyntaxError);
});

it('refuses a name that is there twice in one object, however it is written', () => {
  for (const text of ['{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"b":{"a":1 , "a" : 2}}]'])
    expect(() => parseJson(text, 8)).toThrow('it has "a" twice');
  expect(parseJson('[{"a":{"a":"a"}},{"a":1}]', 8)).toEqual([{ a: { a: 'a' } }, { a: 1 }]);
});

it('refuses a depth that costs memory', () => {
  expect(parseJson('[[[]]]', 3)).toEqual([[[]]]);
  expect(() => parseJson('['.repeat(1_000_000), 3)).toThrow('it is nested more than 3 deep');
});
