// Fields of a module that hold parameters, buffers and modules. Each becomes an accessor that refuses values with
// which the field would silently leave parameters(), buffers() or modules(). A layer declares its own fields; those of
// other modules become accessors when the module is first searched.
import { gradParamsSymbol } from '../core/protocol.ts';
import { Tensor } from '../core/tensor.ts';
import { cannotAssign } from '../errors.ts';
import { buffer, isBuffer, isPersistent } from './buffer.ts';
import { isParameter } from './parameter.ts';

/** What a field holds: parameters, buffers or modules. */
export type FieldKind = 'parameter' | 'buffer' | 'module';

/** What a field that is an accessor has held last. */
interface Held {
  kind: FieldKind;
  isPersistent: boolean;
}

const heldSymbol = Symbol('ringwise.heldFields');

/** A module with accessors. It has the value of each under a symbol of its own, which is fast to read. */
interface Holder {
  [heldSymbol]?: Map<string, Held>;
  [value: symbol]: unknown;
}

function kindOf(value: unknown): FieldKind | null {
  if (isParameter(value)) return 'parameter';
  if (isBuffer(value)) return 'buffer';
  const isModule =
    typeof value === 'object' && value !== null && gradParamsSymbol in value && !(value instanceof Tensor);
  return isModule ? 'module' : null;
}

const hasForward = (value: unknown): boolean =>
  typeof (value as { readonly forward?: unknown } | null)?.forward === 'function';

/** Accepts what PyTorch does; a plain tensor in the field of a buffer becomes one. Throws for what fits no kind. */
function accept(module: object, name: string, held: Held, value: unknown): void {
  const isArrayOfModules = held.kind === 'module' && (Array.isArray(value) || hasForward(value));
  const kind = kindOf(value);
  if (held.kind === 'buffer' && kind === null && value instanceof Tensor)
    buffer(value, { persistent: held.isPersistent });
  else if (kind === null && value !== null && value !== undefined && !isArrayOfModules)
    throw cannotAssign(module.constructor.name, name, held.kind, value);
  held.kind = kind ?? held.kind;
  held.isPersistent = kind === 'buffer' ? isPersistent(value as Tensor) : held.isPersistent;
}

interface Accessor {
  readonly value: symbol;
  readonly property: PropertyDescriptor;
}

const accessors = new Map<string, Accessor>();

/** Returns the accessor of a name. All modules share it, so that objects of one class keep one form. */
function accessorOf(name: string): Accessor {
  const known = accessors.get(name);
  if (known) return known;
  const value = Symbol(name);
  const property: PropertyDescriptor & ThisType<Holder> = {
    get() {
      return this[value];
    },
    set(assigned: unknown) {
      accept(this, name, this[heldSymbol]!.get(name)!, assigned);
      this[value] = assigned;
    },
    enumerable: true,
    configurable: true,
  };
  const made = { value, property };
  accessors.set(name, made);
  return made;
}

function hold(module: Holder, name: string, kind: FieldKind, held: unknown): void {
  if (module[heldSymbol] === undefined) Object.defineProperty(module, heldSymbol, { value: new Map() });
  const isSaved = kind !== 'buffer' || !isBuffer(held) || isPersistent(held);
  module[heldSymbol]!.set(name, { kind, isPersistent: isSaved });
  const { value, property } = accessorOf(name);
  Object.defineProperty(module, value, { value: held, writable: true, configurable: true });
  Object.defineProperty(module, name, property);
}

/** Declares fields of a layer that hold parameters or buffers, or null. The layer calls it when it has set them. */
export function declareFields(module: object, kinds: Readonly<Record<string, FieldKind>>): void {
  for (const [name, kind] of Object.entries(kinds))
    hold(module as Holder, name, kind, (module as Record<string, unknown>)[name]);
}

/** Guards the fields of a module that hold parameters, buffers or modules and are not guarded yet. */
export function guardFields(module: object): void {
  if (!Object.isExtensible(module)) return;
  const held = (module as Holder)[heldSymbol];
  for (const [name, value] of Object.entries(module)) {
    const kind = held?.has(name) ? null : kindOf(value);
    if (kind === null) continue;
    const { configurable, writable } = Object.getOwnPropertyDescriptor(module, name)!;
    if (configurable && writable) hold(module as Holder, name, kind, value);
  }
}
