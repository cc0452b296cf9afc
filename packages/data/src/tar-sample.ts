/** Files of a tar shard that belong together, as WebDataset has it: equal up to the first dot of the file name. */
export interface TarSample {
  /** What is equal, with the folder: `train/0017` of `train/0017.jpg` and `train/0017.cls`. */
  readonly key: string;
  /** Their bytes by what follows the dot, such as `jpg` and `cls`. Decode them with mapDataset. */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

export function splitName(name: string): { readonly key: string; readonly extension: string } {
  const dot = name.indexOf('.', name.lastIndexOf('/') + 1);
  return dot < 0 ? { key: name, extension: '' } : { key: name.slice(0, dot), extension: name.slice(dot + 1) };
}
