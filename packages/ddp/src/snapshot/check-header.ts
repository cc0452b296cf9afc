// Checks the header of a snapshot file before anything in it is used. The checksum of a file finds damage, but a
// program that forges a header also computes the checksum.
import { byteSize, type DType, dtypes } from '@ringwise/collectives';
import { badSnapshot } from '../errors.ts';
import { numbersOutsideJson } from './format.ts';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isStream = (value: unknown): boolean => isFields(value) && 'seed' in value && 'offset' in value;

const kinds: readonly unknown[] = ['stream', 'position', 'marked'];

function isPerRank(value: unknown): boolean {
  if (!isFields(value) || !kinds.includes(value.kind) || typeof value.path !== 'string') return false;
  const { kind, values } = value;
  return Array.isArray(values) && values.length > 0 && (kind !== 'stream' || values.every(isStream));
}

/**
 * Throws ERR_DDP_SNAPSHOT unless `text` is the header of a snapshot whose arrays lie in `dataBytes` bytes, each in
 * bytes of its own. `name` is the file's name for the error.
 */
export function checkHeader(text: string, dataBytes: number, name: string): void {
  const arrays: { readonly offset: number; readonly end: number }[] = [];
  const check = (isRight: boolean, problem: string): void => {
    if (!isRight) throw badSnapshot(name, problem);
  };
  const checkArray = (value: unknown, isTensor: boolean): void => {
    const { dtype, offset, count, shape } = isFields(value) ? value : {};
    const isKnown = dtypes.includes(dtype as DType);
    check(isKnown && isSize(offset) && isSize(count), 'an array in its header has no type, place or length');
    check(
      isTensor ? Array.isArray(shape) && shape.every(isSize) : shape === undefined,
      'a shape in its header is no list of sizes',
    );
    const start = offset as number;
    const end = start + (count as number) * byteSize(dtype as DType);
    check(end <= dataBytes, `an array ends at byte ${end} of its data, which have ${dataBytes}`);
    arrays.push({ offset: start, end });
  };
  try {
    JSON.parse(text, (_, item: unknown) => {
      if (typeof item !== 'object' || item === null) return item;
      const fields = item as Fields;
      if ('$bigint' in fields)
        check(/^-?\d+$/.test(String(fields.$bigint)), 'a bigint in its header is no whole number');
      else if ('$number' in fields)
        check(numbersOutsideJson.includes(fields.$number as string), 'a number in its header cannot be read');
      else if ('$array' in fields) checkArray(fields.$array, false);
      else if ('$perRank' in fields)
        check(isPerRank(fields.$perRank), 'values of ranks in its header cannot be read');
      else if ('$tensor' in fields) checkArray(fields.$tensor, true);
      return item;
    });
  } catch (error) {
    const isText = error instanceof SyntaxError;
    if (isText || error instanceof RangeError)
      throw badSnapshot(name, isText ? 'its header is no JSON' : 'its header is nested too deep');
    throw error;
  }
  arrays.sort((a, b) => a.offset - b.offset || a.end - b.end);
  const overlaps = arrays.some(({ offset }, i) => i > 0 && offset < arrays[i - 1]!.end);
  check(!overlaps, 'arrays in its header overlap');
}
