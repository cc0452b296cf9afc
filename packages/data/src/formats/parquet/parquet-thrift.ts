// Parses Thrift's compact protocol, which Parquet's footer and page headers use. Hyparquet allocates as many elements
// as a list claims, and lists may be nested, so the same bytes are checked here first. This parser keeps no lists and
// no texts, so its memory is bounded by the bytes that are there.
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

const mostDepth = 32;

/** Fields of a struct by number: integers of 16 and 32 bits, structs, and NaN for all other types. */
export type ThriftFields = ReadonlyMap<number, number | ThriftFields>;

/** Parses structs from `at` on. */
export class ThriftReader {
  readonly #bytes: Uint8Array;
  /** Index of the next byte. */
  at: number;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** Parses one struct. Throws if it is incomplete or claims more than the bytes can hold. */
  struct(depth = 0): ThriftFields {
    if (depth > mostDepth) throw new Error(`structs more than ${mostDepth} deep`);
    const fields = new Map<number, number | ThriftFields>();
    for (let id = 0; ; ) {
      const head = this.#byte();
      const type = head & 0x0f;
      if (type === 0) return fields;
      id = head >> 4 === 0 ? this.#zigzag() : id + (head >> 4);
      fields.set(id, this.#value(type, depth));
    }
  }

  #value(type: number, depth: number): number | ThriftFields {
    if (type === 1 || type === 2) return Number.NaN; // true or false: the type is the value
    if (type === 3) this.#skip(1);
    else if (type === 4 || type === 5) return this.#zigzag();
    else if (type === 6) while (this.#byte() & 0x80);
    else if (type === 7) this.#skip(8);
    else if (type === 8) this.#skip(this.#varint());
    else if (type === 9) this.#list(depth);
    else if (type === 12) return this.struct(depth + 1);
    else throw new Error(`an unknown type, ${type}`);
    return Number.NaN;
  }

  /** Parses a list. An element takes at least one byte, so a list cannot have more elements than bytes are left. */
  #list(depth: number): void {
    if (depth > mostDepth) throw new Error(`lists more than ${mostDepth} deep`);
    const head = this.#byte();
    const count = head >> 4 === 15 ? this.#varint() : head >> 4;
    const left = this.#bytes.length - this.at;
    if (count < 0 || count > left) throw new Error(`a list of ${count} elements in ${left} bytes`);
    const type = head & 0x0f;
    const isFlag = type === 1 || type === 2;
    for (let i = 0; i < count; i++) {
      if (isFlag) this.#skip(1);
      else this.#value(type, depth + 1);
    }
  }

  #byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw new Error('bytes that end early');
    return byte;
  }

  #skip(count: number): void {
    const left = this.#bytes.length - this.at;
    if (count < 0 || count > left) throw new Error(`${count} bytes of a text in ${left}`);
    this.at += count;
  }

  /** Parses a varint as hyparquet does: one of more than 32 bits wraps around instead of being refused. */
  #varint(): number {
    let result = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#byte();
      result |= (byte & 0x7f) << shift;
      if (!(byte & 0x80)) return result;
    }
  }

  #zigzag(): number {
    const value = this.#varint();
    return (value >>> 1) ^ -(value & 1);
  }
}
