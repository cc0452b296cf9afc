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

/** The value of a field that is an accessor. */
interface Held {
  kind: FieldKind;
  value: unknown;
  isPersistent: boolean;
}

const heldSymbol = Symbol('ringwise.heldFields');

/** A module whose values are behind accessors. */
interface Holder {
  [heldSymbol]?: Map<string, Held>;
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

/** Assigns as PyTorch does: a plain tensor becomes a buffer in the field of a buffer. Throws for what fits no kind. */
function assign(module: object, name: string, held: Held, value: unknown): void {
  const isArrayOfModules = held.kind === 'module' && (Array.isArray(value) || hasForward(value));
  const kind = kindOf(value);
  if (held.kind === 'buffer' && kind === null && value instanceof Tensor)
    buffer(value, { persistent: held.isPersistent });
  else if (kind === null && value !== null && value !== undefined && !isArrayOfModules)
    throw cannotAssign(module.constructor.name, name, held.kind, value);
  held.kind = kind ?? held.kind;
  held.isPersistent = kind === 'buffer' ? isPersistent(value as Tensor) : held.isPersistent;
  held.value = value;
}

const accessors = new Map<string, PropertyDescriptor & ThisType<Holder>>();

/** Returns the accessor of a name. All modules share it, so that objects of one class keep one form. */
function accessorOf(name: string): PropertyDescriptor {
  const known = accessors.get(name);
  if (known) return known;
  const made: PropertyDescriptor & ThisType<Holder> = {
    get() {
      return this[heldSymbol]!.get(name)!.value;
    },
    set(value: unknown) {
      assign(this, name, this[heldSymbol]!.get(name)!, value);
    },
    enumerable: true,
    configurable: true,
  };
  accessors.set(name, made);
  return made;
}

function hold(module: Holder, name: string, kind: FieldKind, value: unknown): void {
  if (module[heldSymbol] === undefined) Object.defineProperty(module, heldSymbol, { value: new Map() });
  const isSaved = kind !== 'buffer' || !isBuffer(value) || isPersistent(value);
  module[heldSymbol]!.set(name, { kind, value, isPersistent: isSaved });
  Object.defineProperty(module, name, accessorOf(name));
}

/** Declares fields of a layer that hold parameters or buffers, or null. The layer calls it when it has set them. */
export function declareFields(module: object, kinds: Readonly<Record<string, FieldKind>>): void {
  for (const [name, kind] of Object.entries(kinds))
    hold(module, name, kind, (module as Record<string, unknown>)[name]);
}

/** Guards the fields of a module that hold parameters, buffers or modules and are not guarded yet. */
export function guardFields(module: object): void {
  if (!Object.isExtensible(module)) return;
  const held = (module as Holder)[heldSymbol];
  for (const [name, value] of Object.entries(module)) {
    const kind = held?.has(name) ? null : kindOf(value);
    if (kind === null) continue;
    const { configurable, writable } = Object.getOwnPropertyDescriptor(module, name)!;
    if (configurable && writable) hold(module, name, kind, value);
  }
}
