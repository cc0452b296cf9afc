import type { ForeignMembers } from '../options/foreign-members.ts';

/** Members of a group as users of torch.distributed may call them; names in snake_case of ours need no entry. */
export const foreignGroupMembers: ForeignMembers = {
  properties: {
    ...{ worldSize: 'size', world_size: 'size', getRank: 'rank', get_rank: 'rank' },
    ...{ getWorldSize: 'size', get_world_size: 'size', getSize: 'size' },
  },
  methods: {
    ...{ isend: 'send(), which returns at once', irecv: 'recv(), which returns at once' },
    ...{ newGroup: 'subgroup()', new_group: 'subgroup()', destroy: 'close()' },
    ...{ destroyProcessGroup: 'close()', destroy_process_group: 'close()' },
    ...{ allGatherIntoTensor: 'allGather()', all_gather_into_tensor: 'allGather()' },
    ...{ reduceScatterTensor: 'reduceScatter()', reduce_scatter_tensor: 'reduceScatter()' },
    ...{ allToAllSingle: 'allToAll()', all_to_all_single: 'allToAll()' },
    ...{ broadcastObjectList: 'broadcastObject()', broadcast_object_list: 'broadcastObject()' },
    ...{ batchIsendIrecv: 'batch()', batch_isend_irecv: 'batch()' },
  },
};
