// Runs the tasks with the addon that RINGWISE_NATIVE_PATH names, on one thread, and prints a JSON line for each.
// Arguments: the seconds for each product, and words of the tasks that are wanted.
import { setNumThreads } from '@ringwise/tensor';
import { inputsOf, runTask, tasksOf } from './tasks.ts';

const [seconds, ...words] = process.argv.slice(2);
setNumThreads(1);
const tasks = tasksOf(Number(seconds), words);
const inputs = inputsOf(tasks);
for (const task of tasks) console.log(JSON.stringify({ name: task.name, ...runTask(task, inputs) }));
