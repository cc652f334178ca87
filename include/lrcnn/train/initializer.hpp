#pragma once
// First values of the parameters.
//
// A parameter with a fan-in is drawn from a distribution, every other (biases) is filled with ParameterShape::fill.
// Each parameter draws from a stream of its own, named by the seed and the parameter's name, at positions that are
// its own element indices: its values depend neither on the order of the parameters, nor on what else the network
// has, nor on threads or slabs.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/checksum.hpp>
#include <lrcnn/core/rng.hpp>
#include <lrcnn/network/parameters.hpp>
#include <lrcnn/core/text.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
namespace lrcnn {
enum class Fan { in, out };
enum class Distribution { normal, uniform };
/// Keeps the variance of activations (Fan::in) or of gradients (Fan::out) through rectifiers.
/// Standard deviation sqrt(2 / (1 + slope^2) / fan); uniform in +-sqrt(3) times that.
/// Source: He et al., "Delving deep into rectifiers", ICCV 2015, eqs. 10, 14 and 15 (Kaiming in PyTorch).
struct He {
  Fan fan = Fan::in;
  Distribution distribution = Distribution::normal;
  double slope = 0;   ///< that of a leaky rectifier below zero
  friend constexpr bool operator==(const He&, const He&) = default;
};
/// Standard deviation gain * sqrt(2 / (fan_in + fan_out)); uniform in +-sqrt(3) times that.
/// Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
///         AISTATS 2010, eqs. 12 and 16.
struct Xavier {
  Distribution distribution = Distribution::uniform;
  double gain = 1;
  friend constexpr bool operator==(const Xavier&, const Xavier&) = default;
};
/// The same value everywhere, whatever the fans, but for running statistics, which start as ParameterShape::fill says.
struct Fill {
  double value = 0;
  friend constexpr bool operator==(const Fill&, const Fill&) = default;
};
using Initializer = std::variant<He, Xavier, Fill>;
/// The stream of random numbers of a parameter with this name.
constexpr std::uint64_t stream_of(std::string_view name) { return hash64(name); }
/// Standard deviation that an initializer gives to a parameter; 0 if it is filled.
inline double initial_deviation(const Initializer& initializer, const ParameterShape& shape) {
  if (shape.fan_in == 0) return 0;
  if (const auto* he = std::get_if<He>(&initializer)) {
    const Index fan = he->fan == Fan::out && shape.fan_out > 0 ? shape.fan_out : shape.fan_in;
    return std::sqrt(2 / (1 + he->slope * he->slope) / static_cast<double>(fan));
  }
  if (const auto* xavier = std::get_if<Xavier>(&initializer)) return xavier->gain * std::sqrt(2 / static_cast<double>(shape.fan_in + shape.fan_out));
  return 0;
}
/// Writes one parameter's first values.
template <class T>
void initialize(const Parameter& parameter, const Initializer& initializer, std::uint64_t seed, std::span<T> values) {
  const auto* fill = parameter.shape.running ? nullptr : std::get_if<Fill>(&initializer);
  const double deviation = initial_deviation(initializer, parameter.shape);
  const auto* he = std::get_if<He>(&initializer);
  if (!std::isfinite(deviation) || (he && !std::isfinite(he->slope)) || (fill && !std::isfinite(fill->value)))
    throw Error(error_text("initial values of '" + parameter.name + "' would have the " +
                               (fill ? "value " + number_text(fill->value) : "deviation " + number_text(deviation)),
                           "values, gain and slope are finite", "mend the initializer's settings"));
  const Random random(seed, stream_of("initial values of " + parameter.name));
  const auto* xavier = std::get_if<Xavier>(&initializer);
  const bool uniform = (he ? he->distribution : xavier ? xavier->distribution : Distribution::normal) == Distribution::uniform;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (fill) values[i] = static_cast<T>(fill->value);
    else if (parameter.shape.fan_in == 0) values[i] = static_cast<T>(parameter.shape.fill);
    else if (uniform) values[i] = static_cast<T>(std::sqrt(3.0) * deviation * (2 * random.uniform(i) - 1));
    else values[i] = static_cast<T>(deviation * random.normal(i));
  }
}
/// Writes the first values of all parameters; gaps between them stay as they are.
/// Post:    a parameter's values are a function of its name, its shape, the initializer and the seed
/// Errors:  ShapeError if the buffer is too small
template <class T>
void initialize(std::span<const Parameter> parameters, const Initializer& initializer, std::uint64_t seed, std::span<T> flat) {
  for (const Parameter& p : parameters) initialize(p, initializer, seed, elements_of(p, flat));
}
}   // namespace lrcnn
