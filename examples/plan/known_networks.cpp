// The networks that come with the library, in a file of their own: as constants, they take a compiler as long as the rest of the program.
#include "../known_names.hpp"
#include <lrcnn/network/convnext.hpp>
#include <lrcnn/network/densenet.hpp>
#include <lrcnn/network/lenet.hpp>
#include <lrcnn/network/mobilenet.hpp>
#include <lrcnn/network/resnet.hpp>
#include <lrcnn/network/squeezenet.hpp>
#include <lrcnn/network/unet.hpp>
#include <lrcnn/network/vgg.hpp>
#include <array>
std::span<const NamedNetwork> known_networks() {
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
