// A group of this process alone, used to wrap a model before the process joins a job.
import { type Group, loopbackGroups } from '@ringwise/collectives';

export const soloGroup = (): Group => loopbackGroups(1, { name: 'alone' })[0]!;
