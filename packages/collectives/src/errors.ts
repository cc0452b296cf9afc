// The errors of a group (those of init() are in init/errors.ts, those about options in options/errors.ts).
export * from './errors/arguments.ts';
export {
  type CollectiveCode,
  CollectiveError,
  type Failure,
  local,
  rankList,
  type Site,
} from './errors/collective-error.ts';
export * from './errors/failures.ts';
export * from './errors/lists.ts';
export * from './errors/objects.ts';
export * from './errors/unsupported.ts';
