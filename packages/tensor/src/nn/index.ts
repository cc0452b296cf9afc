export { type BufferOptions, buffer } from './buffer.ts';
export { ModuleDict, ModuleList, Sequential } from './containers.ts';
export type { ForwardHook, ForwardPreHook } from './hooks.ts';
export { Flatten, ReLU } from './layers.ts';
export { Linear } from './linear.ts';
export { type Layer, Module } from './module.ts';
export { parameter } from './parameter.ts';
export type { LoadResult, StateDict } from './state-dict.ts';
