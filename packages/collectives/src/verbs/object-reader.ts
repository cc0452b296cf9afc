// Reads a value from bytes of the structured clone algorithm. deserialize() of node:v8 gives typed arrays that are
// views of these bytes: their `buffer` would be the whole message, would keep it in memory, and would be transferred
// with it to a worker thread. Here each one has memory of its own, as after structuredClone().
import { DefaultDeserializer } from 'node:v8';

class Reader extends DefaultDeserializer {
  _readHostObject(): unknown {
    // @ts-expect-error: the types of Node.js lack this method, which its documentation has
    return copyOf(super._readHostObject() as ArrayBufferView);
  }
}

function copyOf(view: ArrayBufferView): ArrayBufferView {
  if (view instanceof DataView)
    return new DataView(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  // Not the own slice() of a Buffer, which copies nothing.
  return Uint8Array.prototype.slice.call(view);
}

/** Returns the value that serialize() of node:v8 has written. Throws if the bytes are none. */
export function readObject(bytes: Uint8Array): unknown {
  const reader = new Reader(bytes);
  reader.readHeader();
  return reader.readValue();
}
