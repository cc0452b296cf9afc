export { Flatten, ReLU, Sequential } from './layers.ts';
export { Linear } from './linear.ts';
export { type Layer, Module } from './module.ts';
export { parameter } from './parameter.ts';
