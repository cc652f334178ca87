#pragma once
// All ready-made policies with their names, for programs that show them and for searches that compare with them.
#include <lrcnn/policy/resnet.hpp>
#include <lrcnn/policy/unet.hpp>
#include <lrcnn/policy/vgg.hpp>
#include <string_view>
namespace lrcnn {
/// A policy that comes with the library. ready_made_policies is the list of all of them.
struct ReadyMadePolicy {
  std::string_view name;   ///< "vgg::Small"
  PolicySpec policy{};
};
inline constexpr std::array ready_made_policies{ReadyMadePolicy{"vgg::Fast", vgg::Fast::value},
                                                ReadyMadePolicy{"vgg::Balanced", vgg::Balanced::value},
                                                ReadyMadePolicy{"vgg::Small", vgg::Small::value},
                                                ReadyMadePolicy{"vgg::SmallByImages", vgg::SmallByImages::value},
                                                ReadyMadePolicy{"vgg::SmallestByImages", vgg::SmallestByImages::value},
                                                ReadyMadePolicy{"vgg::LargeBalanced", vgg::LargeBalanced::value},
                                                ReadyMadePolicy{"vgg::LargeSmall", vgg::LargeSmall::value},
                                                ReadyMadePolicy{"resnet::Fast", resnet::Fast::value},
                                                ReadyMadePolicy{"resnet::Small50", resnet::Small50::value},
                                                ReadyMadePolicy{"resnet::Small", resnet::Small::value},
                                                ReadyMadePolicy{"resnet::Large18", resnet::Large18::value},
                                                ReadyMadePolicy{"resnet::LargeSmall18", resnet::LargeSmall18::value},
                                                ReadyMadePolicy{"resnet::Large50", resnet::Large50::value},
                                                ReadyMadePolicy{"resnet::LargeSmall50", resnet::LargeSmall50::value},
                                                ReadyMadePolicy{"unet::Fast", unet::Fast::value},
                                                ReadyMadePolicy{"unet::Small", unet::Small::value}};
}   // namespace lrcnn
