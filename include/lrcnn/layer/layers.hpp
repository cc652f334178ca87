#pragma once
// All kinds of layers, and where to ask for the rules of one.
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/channels.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/custom.hpp>
#include <lrcnn/layer/dropout.hpp>
#include <lrcnn/layer/join.hpp>
#include <lrcnn/layer/linear.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pad.hpp>
#include <lrcnn/layer/pointwise.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/layer/resample.hpp>
#include <utility>
namespace lrcnn {
namespace detail {
template <class Kinds>
struct RulesTable;
template <std::size_t... kinds>
struct RulesTable<std::index_sequence<kinds...>> {
  static constexpr const LayerRules* row[sizeof...(kinds)]{&kind_rules<static_cast<Kind>(kinds)>...};
  static_assert((!kind_rules<static_cast<Kind>(kinds)>.name.empty() && ...),
                "lrcnn: a kind of layer has no rules; each has kind_rules<kind> beside its descriptor; specialise it");
};
using AllRules = RulesTable<std::make_index_sequence<kind_count>>;
}   // namespace detail
/// The rules of a layer: those of its kind, or a custom layer's own.
constexpr const LayerRules& rules_of(const Layer& layer) {
  return layer.kind == Kind::custom ? layer.custom->rules : *detail::AllRules::row[static_cast<std::size_t>(layer.kind)];
}
/// "conv", "max_pool", "relu", "batch_norm", a custom layer's own name
constexpr std::string_view variant_name(const Layer& layer) {
  const LayerRules& rules = rules_of(layer);
  const std::string_view variant = rules.variant(layer);
  return !variant.empty() ? variant : !rules.name.empty() ? rules.name : std::string_view("custom");
}
/// "conv", "max_pool", ...
constexpr std::string_view kind_name(Kind kind) { return detail::AllRules::row[static_cast<std::size_t>(kind)]->name; }
}   // namespace lrcnn
