// A rank of spawn() is one call of one function. The call is sent to a process or thread, which makes it and
// replies.

export interface Call {
  readonly url: string;
  readonly exportName: string;
  /** Arguments; the rank is the first. */
  readonly args: readonly unknown[];
}

export interface Reply {
  readonly result: unknown;
}

export async function makeCall({ url, exportName, args }: Call): Promise<Reply> {
  const module = (await import(url)) as Record<string, unknown>;
  // Exports of a CommonJS module that Node.js has not detected by name are on the default export.
  const body = module[exportName] ?? (module.default as Record<string, unknown> | undefined)?.[exportName];
  if (typeof body === 'function') return { result: await body(...args) };
  throw new TypeError(
    `spawn: ${url} has no function named '${exportName}'; it exports ${Object.keys(module).join(', ') || 'nothing'}. ` +
      'Export one, or name it with exportName.',
  );
}
