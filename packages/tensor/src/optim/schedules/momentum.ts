// Sets the momentum of a group, for schedules.
import { badOption } from '../../errors.ts';
import type { AnyGroup } from './schedule.ts';

/** A group with the option that an optimiser uses as momentum: the first beta in Adam and Lion. */
type Momentous = AnyGroup & { momentum?: number; betas?: readonly [number, number] };

/** Sets momentum, or the first beta. Throws in the name of the schedule if the group has neither. */
export function setMomentum(schedule: string, group: AnyGroup, momentum: number): void {
  const own = group as Momentous;
  if (own.betas) own.betas = [momentum, own.betas[1]];
  else if (own.momentum !== undefined) own.momentum = momentum;
  else throw badOption(`${schedule}: cycleMomentum`, 'an optimiser with momentum or betas', 'none');
}
