#pragma once
// Bytes of the rows by which gradients in place lie behind their values.
#include <lrcnn/plan/make_plan.hpp>
namespace lrcnn::testing {
/// A search for policies (plan/section_search.hpp) counts these rows only while a tensor's values and its gradient are both there, so its plans may
/// have so many more live bytes than it was given.
inline Index bytes_behind(const Table& table, const PolicySpec& policy, const Target& target, const PlanOptions& options) {
  const Index images = group_images(table, policy);
  Measure unheard;
  const std::vector<Stage> stages = make_stages(table, policy, target, images, options);
  const std::vector<Index> lags = Emitter(table, policy, target, options, stages, unheard).plan_lags();
  Index bytes = 0;
  for (Index g = 0; g < static_cast<Index>(lags.size()); ++g)
    if (const Shape& s = table.shape(g); item(lags, g) > 0)
      bytes += round_up(target.bytes(images, s.c, item(lags, g), s.w), target.alignment) + target.alignment;
  return bytes;
}
}   // namespace lrcnn::testing
