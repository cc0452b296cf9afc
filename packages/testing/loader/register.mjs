// Lets a rank import TypeScript, by `node --import`. Node.js 22.18 and newer can do that by themselves. The usual
// loaders take 0.2 s to start and compile again in each process, which is longer than most ranks of a test run.
import { register } from 'node:module';

if (!process.features.typescript) register('./hooks.mjs', import.meta.url);
