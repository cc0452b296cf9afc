#include "coll/plan/topology.h"

#include <algorithm>
#include <map>

namespace ringwise::coll {

Hosts::Hosts(const std::vector<int>& host_of) {
  std::map<int, int> numbers;
  for (size_t rank = 0; rank < host_of.size(); ++rank) {
    const int host = numbers.try_emplace(host_of[rank], static_cast<int>(numbers.size())).first->second;
    if (host == count()) ranks_.emplace_back();
    host_.push_back(host);
    index_on_host_.push_back(static_cast<int>(ranks_[host].size()));
    ranks_[host].push_back(static_cast<int>(rank));
  }
  size_t smallest = host_of.size();
  for (const auto& ranks : ranks_) smallest = std::min(smallest, ranks.size());
  columns_.resize(smallest);
  for (size_t index = 0; index < smallest; ++index) {
    for (const auto& ranks : ranks_) columns_[index].push_back(ranks[index]);
  }
}

Team Hosts::on_host_of(int rank) const {
  const auto& ranks = ranks_[host_[rank]];
  return {index_on_host_[rank], static_cast<int>(ranks.size()), ranks.data()};
}

Team Hosts::column_of(int rank) const { return {host_[rank], count(), columns_[index_on_host_[rank]].data()}; }

}  // namespace ringwise::coll
