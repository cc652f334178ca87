#pragma once
// Networks and policies that programs know by name.
#include <lrcnn/core/error.hpp>
#include <lrcnn/layer/layer.hpp>
#include <lrcnn/policy/parse.hpp>
#include <span>
#include <string>
#include <string_view>
struct NamedNetwork {
  std::string_view name;
  std::span<const lrcnn::Layer> layers;
};
/// All that come with the library, and the example of docs/how-it-works.md.
std::span<const NamedNetwork> known_networks();   // plan/known_networks.cpp
struct NamedPolicy {
  std::string_view name;
  lrcnn::PolicySpec spec;
  std::string_view what{};
};
/// For any network. The first one is layer by layer.
inline std::span<const NamedPolicy> known_policies() {
  using namespace lrcnn;
  static const std::array<NamedPolicy, 7> policies{{
      {"column", Policy<Column>::value, "layer by layer"},
      {"images", Policy<Images<1>>::value, "layer by layer, one image at a time"},
      {"pools", Policy<CheckpointAtPools, RecomputeAll>::value, "pools kept, the rest computed again, no slabs"},
      {"share", Policy<Share<4>, CheckpointAtPools, RecomputeAll>::value, "4 slabs that hand rows on"},
      {"overlap", Policy<Overlap<4>, CheckpointAtPools, RecomputeAll>::value, "4 independent slabs"},
      {"fine", Policy<Stages<Overlap<12>, Overlap<6>, Overlap<3>, Column>, CheckpointAtPools, RecomputeAll>::value,
       "12, 6, 3 and 1 independent slabs"},
      {"both", Policy<Images<1>, Overlap<4>, CheckpointAtPools, RecomputeAll>::value, "4 slabs, one image at a time"},
  }};
  return policies;
}
/// The entry of a list that has this name. `what`: what the list has, for the message.
/// Errors: lrcnn::Error with all names if there is none.
template <class Named>
const Named& find_name(std::span<const Named> list, std::string_view what, std::string_view name) {
  std::string names;
  for (const Named& entry : list) {
    if (entry.name == name) return entry;
    names += " " + std::string(entry.name);
  }
  throw lrcnn::Error(lrcnn::error_text("no " + std::string(what) + " '" + std::string(name) + "'", "there are:" + names, "choose one of them"));
}
/// A policy by its name, or by its text.
/// Errors: as find_name() and lrcnn::parse_policy()
inline lrcnn::PolicySpec policy_from(std::string_view text) {
  return text.starts_with("Policy") ? lrcnn::parse_policy(text) : find_name(known_policies(), "policy", text).spec;
}
