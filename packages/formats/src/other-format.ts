// Recognises files of other formats, which programs often pass to a reader by mistake.

const beginnings: readonly (readonly [string, string])[] = [
  ['PK\x03\x04', 'a ZIP archive, as torch.save() and numpy.savez() write it'],
  ['\x93NUMPY', 'a .npy file'],
  ['\x80\x02', 'a pickle, as older versions of torch.save() write it'],
];

/** Returns what a file is that begins with `start`, such as "a .npy file", or null if its format is not known. */
export function otherFormat(start: Buffer): string | null {
  const text = start.toString('latin1');
  return beginnings.find(([beginning]) => text.startsWith(beginning))?.[1] ?? null;
}
