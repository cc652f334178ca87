#pragma once
// Networks and policies that programs know by name.
#include <lrcnn/core/error.hpp>
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <lrcnn/policy/parse.hpp>
#include <span>
struct NamedNetwork {
  std::string_view name;
  std::span<const lrcnn::Layer> layers;
};
/// All that come with the library, and the example of docs/how-it-works.md.
inline std::span<const NamedNetwork> known_networks() {
  using namespace lrcnn;
  using Example = Sequential<Conv<8>, Conv<8>, MaxPool<>, GlobalAvgPool, Linear<10>>;
  static const std::array<NamedNetwork, 24> networks{{{"vgg11", Vgg11<>::layers},
                                                      {"vgg13", Vgg13<>::layers},
                                                      {"vgg16", Vgg16<>::layers},
                                                      {"vgg19", Vgg19<>::layers},
                                                      {"resnet18", ResNet18<>::layers},
                                                      {"resnet34", ResNet34<>::layers},
                                                      {"resnet50", ResNet50<>::layers},
                                                      {"resnet101", ResNet101<>::layers},
                                                      {"resnet152", ResNet152<>::layers},
                                                      {"unet", UNet<2>::layers},
                                                      {"unet2015", UNet2015<2>::layers},
                                                      {"densenet121", DenseNet121<>::layers},
                                                      {"densenet161", DenseNet161<>::layers},
                                                      {"densenet169", DenseNet169<>::layers},
                                                      {"densenet201", DenseNet201<>::layers},
                                                      {"mobilenet_v2", MobileNetV2<>::layers},
                                                      {"convnext_tiny", ConvNeXtTiny<>::layers},
                                                      {"convnext_small", ConvNeXtSmall<>::layers},
                                                      {"convnext_base", ConvNeXtBase<>::layers},
                                                      {"convnext_large", ConvNeXtLarge<>::layers},
                                                      {"squeezenet11", SqueezeNet11<>::layers},
                                                      {"smallnet", SmallNet<>::layers},
                                                      {"lenet", LeNet<>::layers},
                                                      {"example", Example::layers}}};
  return networks;
}
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
