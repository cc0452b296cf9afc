// The in-place forms of elementwise operations as methods.
import { type InPlaceForm, inPlaceForms } from '../../core/methods/in-place.ts';
import type { Tensor } from '../../core/tensor.ts';
import { inPlaceForm } from '../elementwise/functions/in-place-forms.ts';
import * as ops from '../index.ts';
import { addMethods } from './define.ts';

type Form = (a: Tensor, ...rest: never[]) => Tensor;

const forms: Readonly<Record<InPlaceForm, unknown>> = ops;

addMethods(
  Object.fromEntries(
    inPlaceForms.map((name) => {
      const form = inPlaceForm(name, forms[name] as Form);
      const method = function (this: Tensor, ...rest: never[]): Tensor {
        return form(this, ...rest);
      };
      return [`${name}_`, method];
    }),
  ),
);
