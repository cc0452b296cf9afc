// The vocabulary of kernel declarations. A declaration is data: TypeScript infers the contract of a kernel
// from it, the native backend builds its calls from it, and native/generate writes C++ from it: the struct
// that a kernel receives, the dispatch tables and the binding with its bounds checks. Nothing here may import
// code of another folder, because the build reads these files alone.
//
// An extent is a string: the number of elements of an operand, as a product of sizes ("outer size inner"). A
// factor is an attribute, a number, or a sum ("outHeight+outWidth"); "isPerRow ? rows : 1" chooses. A name in
// an extent that no declaration lists as an attribute becomes an attribute of kind 'size'.

import type { Input, Stream, Strided } from '../operands.ts';

/**
 * The dtype of an operand. main: the main dtype of the call, see `KernelDType`. row: float32 where the main dtype is a
 * half, else the main dtype. label: int32 or int64, as the memory has it.
 */
export type OperandDType = 'main' | 'row' | 'label' | 'int64';

/**
 * The form of an operand in a call. memory: dense elements. optional: the same, or null. number: the same, or one
 * number. heads: elements with four strides of which the last is 1. mask: the same with any strides, of bool or of the
 * main dtype; or null.
 */
export type OperandForm = 'memory' | 'optional' | 'number' | 'heads' | 'mask';

export interface Operand<Extent extends string = string, Form extends OperandForm = OperandForm> {
  readonly extent: Extent;
  readonly form: Form;
  readonly dtype: OperandDType;
  /** Whether the kernel writes it. */
  readonly isOutput: boolean;
}

const operand =
  <Form extends OperandForm>(form: Form, isOutput: boolean) =>
  <const Extent extends string>(extent: Extent, dtype: OperandDType = 'main'): Operand<Extent, Form> => ({
    extent,
    form,
    dtype,
    isOutput,
  });

/** Declares elements that a kernel reads. */
export const input = operand('memory', false);
/** Declares elements that a kernel writes. */
export const output = operand('memory', true);
/** Declares elements that a kernel reads, or null. */
export const optionalInput = operand('optional', false);
/** Declares elements that a kernel writes, or null. */
export const optionalOutput = operand('optional', true);
/** Declares elements that a kernel reads, or one number. */
export const inputOrNumber = operand('number', false);
/** Declares rows [batch, heads, rows, width] that a kernel reads. The extent names the four dimensions. */
export const headsInput = operand('heads', false);
/** Declares rows [batch, heads, rows, width] that a kernel writes. The extent names the four dimensions. */
export const headsOutput = operand('heads', true);
/** Declares a mask [batch, heads, rows, cols], or null. The extent names the four dimensions. */
export const mask = operand('mask', false);

/** A name out of a list; C++ has an enumeration of the same order. */
export interface Choice<Name extends string = string> {
  readonly kind: 'choice';
  readonly names: readonly Name[];
}
/** Attributes that travel together; a struct in C++. */
export interface Group<Members extends Attributes = Attributes> {
  readonly kind: 'group';
  readonly members: Members;
}
export type Attribute = 'size' | 'integer' | 'number' | 'flag' | 'stream' | 'dtype' | Choice | Group;
// An interface, because the type refers to itself through Group.
export interface Attributes {
  readonly [name: string]: Attribute;
}
export type Operands = Readonly<Record<string, Operand>>;

export const choice = <const Name extends string>(names: readonly Name[]): Choice<Name> => ({
  kind: 'choice',
  names,
});
export const group = <const Members extends Attributes>(members: Members): Group<Members> => ({
  kind: 'group',
  members,
});

/** Operands and attributes that several kernels have; a base struct in C++. */
export interface Part<O extends Operands = Operands, A extends Attributes = Attributes> {
  readonly base: Part | null;
  readonly operands: O;
  readonly attributes: A;
}

/**
 * The main dtype of a call, which is that of its first operand. any: every dtype. float: float32 or float64.
 * stored: float32 or float64, on CUDA also float16 and bfloat16, which are computed in float32.
 */
export type KernelDType = 'any' | 'float' | 'stored';

/** A kernel over dense operands. */
export interface Kernel<O extends Operands = Operands, A extends Attributes = Attributes> extends Part<O, A> {
  readonly kind: 'dense';
  readonly dtype: KernelDType;
  /** Whether native/node/tensor/tensor_checks.h has a check of more than extents. */
  readonly isChecked: boolean;
}

/** A kernel that walks over operands of any strides, all in one shape. Operand 0 is the output. */
export interface WalkKernel<A extends Attributes = Attributes> {
  readonly kind: 'walk';
  readonly base: Part | null;
  readonly attributes: A;
  /** The least and the largest number of operands. */
  readonly operands: readonly [least: number, most: number];
  readonly isChecked: boolean;
}

/**
 * A kernel over a list of tensors. Its C++ is not generated: the struct is in native/tensor/optimizer.h, the binding in
 * native/node/tensor/tensor_optimizer.cc.
 */
export interface ListKernel {
  readonly kind: 'list';
}

/** The names in an extent, except those of a group's members, such as window.height. */
type Words<E extends string> = E extends `${infer Flag} ? ${infer Yes} : ${infer No}`
  ? Words<Flag> | Words<Yes> | Words<No>
  : E extends `${infer First} ${infer Rest}`
    ? Words<First> | Words<Rest>
    : E extends `${infer First}+${infer Rest}`
      ? Words<First> | Words<Rest>
      : E extends `${number}` | `${string}.${string}`
        ? never
        : E;
type ImpliedBy<O extends Operands> = { [K in keyof O]: Words<O[K]['extent']> }[keyof O];
/** Attributes with the sizes that extents name and that a base does not have. */
type WithSizes<O extends Operands, A extends Attributes, Inherited> = {
  readonly [K in Exclude<ImpliedBy<O>, keyof A | keyof Inherited>]: 'size';
} & A;

// biome-ignore lint/complexity/noBannedTypes: the type without members is what a declaration without a base adds
type None = {};
type OperandsFrom<B> = B extends Part<infer O, infer _> ? O : None;
type AttributesFrom<B> = B extends Part<infer _, infer A> ? A : None;

export interface PartOptions<A extends Attributes, B extends Part | null> {
  readonly attributes?: A;
  /** Adds to the operands and attributes of another part or kernel, which come first. */
  readonly base?: B;
}

/** Returns the values of the type Words: the names in an extent that are separate attributes. */
function wordsOf(extent: string): string[] {
  return extent.split(/[ ?:+]+/).filter((word) => /^[a-z]\w*$/i.test(word));
}

/** Declares operands and attributes that several kernels have. */
export function part<
  const O extends Operands,
  const A extends Attributes = None,
  B extends Part | null = null,
>(
  operands: O,
  { attributes, base }: PartOptions<A, B> = {},
): Part<OperandsFrom<B> & O, AttributesFrom<B> & WithSizes<O, A, AttributesFrom<B>>> {
  const own: Record<string, Attribute> = {};
  const inherited = base?.attributes ?? {};
  for (const { extent } of Object.values(operands)) {
    for (const word of wordsOf(extent)) {
      if (!(word in inherited) && !(attributes && word in attributes)) own[word] = 'size';
    }
  }
  const merged = {
    base: base ?? null,
    operands: { ...base?.operands, ...operands },
    attributes: { ...inherited, ...own, ...attributes },
  };
  return merged as unknown as Part<
    OperandsFrom<B> & O,
    AttributesFrom<B> & WithSizes<O, A, AttributesFrom<B>>
  >;
}

/** Declares a kernel over dense operands. The first operand, with those of the base in front, has the main dtype. */
export function kernel<
  const O extends Operands,
  const A extends Attributes = None,
  B extends Part | null = null,
>(
  dtype: KernelDType,
  operands: O,
  { isChecked = false, ...options }: PartOptions<A, B> & { readonly isChecked?: boolean } = {},
): Kernel<OperandsFrom<B> & O, AttributesFrom<B> & WithSizes<O, A, AttributesFrom<B>>> {
  return { kind: 'dense', dtype, isChecked, ...part(operands, options as PartOptions<A, B>) };
}

/** Declares a kernel that walks over operands of any strides. */
export function walk<const A extends Attributes = None, B extends Part | null = null>(
  operands: readonly [least: number, most: number],
  { attributes, base, isChecked = false }: PartOptions<A, B> & { readonly isChecked?: boolean } = {},
): WalkKernel<AttributesFrom<B> & A> {
  const merged = { ...base?.attributes, ...attributes } as AttributesFrom<B> & A;
  return { kind: 'walk', base: base ?? null, attributes: merged, operands, isChecked };
}

/** Declares a kernel over a list of tensors. */
export const list = (): ListKernel => ({ kind: 'list' });

type ValueOf<A extends Attribute> =
  A extends Choice<infer Name>
    ? Name
    : A extends Group<infer Members>
      ? { readonly [K in keyof Members]: ValueOf<Members[K]> }
      : A extends 'flag'
        ? boolean
        : A extends 'stream'
          ? Stream
          : number;
type FormOf<O extends Operand> = O extends Operand<string, infer Form> ? Form : never;
type GivenFor<Form extends OperandForm> = Form extends 'optional' | 'mask'
  ? Strided | null
  : Form extends 'number'
    ? Input
    : Strided;

/** The operands that a call of a kernel passes. */
export type OperandsOf<K> =
  K extends Part<infer O, infer _> ? { readonly [Name in keyof O]: GivenFor<FormOf<O[Name]>> } : never;
/** The attributes that a call of a kernel passes. */
export type AttributesOf<K> = K extends { readonly attributes: infer A extends Attributes }
  ? { readonly [Name in keyof A]: ValueOf<A[Name]> }
  : never;
/** The function type of a declaration of a kernel over dense operands. */
export type FunctionOf<K> = (operands: OperandsOf<K>, attributes: AttributesOf<K>) => void;

/** The position of an attribute among the numbers of a call: from index `at` on. */
export interface Slot {
  readonly name: string;
  readonly attribute: Attribute;
  readonly at: number;
  /** Members of a group; empty for all others. */
  readonly members: readonly Slot[];
}

const numbersIn = (attribute: Attribute): number => {
  if (attribute === 'stream') return 3;
  if (typeof attribute === 'string' || attribute.kind === 'choice') return 1;
  return Object.values(attribute.members).reduce((sum, member) => sum + numbersIn(member), 0);
};

/** Returns where a call passes each attribute. A stream is three numbers: seed, offset, and `live` or −1. */
export function slotsOf(attributes: Attributes, first = 0): Slot[] {
  let at = first;
  return Object.entries(attributes).map(([name, attribute]) => {
    const isGroup = typeof attribute === 'object' && attribute.kind === 'group';
    const slot = { name, attribute, at, members: isGroup ? slotsOf(attribute.members, at) : [] };
    at += numbersIn(attribute);
    return slot;
  });
}
