// Norms, joins and upsampling on the oneDNN backend: the host's loops do them, with the activation of the step applied once.
#include "host_case.hpp"
#include <lrcnn/backend/onednn.hpp>
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::testing;
TEST_CASE("steps that the library has no part in run as on the host, with their activation applied once") {
  const Shape in{2, 20, 4, 6};
  Layer after;
  after.activation = {Function::leaky_relu, 0.5};   // applied twice, it would show
  const Node activation{.layer = after, .in = in, .out = in};
  Layer norm{.kind = Kind::norm};
  norm.norm.over = Norm::Over::channels;
  Shape wide = in, large = in;
  wide.c *= 2, large.h *= 2, large.w *= 2;
  const std::vector<Node> nodes{{.layer = norm, .in = in, .out = in},
                                {.layer = {.kind = Kind::sum}, .other = 1, .in = in, .in2 = in, .out = in},
                                {.layer = {.kind = Kind::concat}, .other = 1, .in = in, .in2 = in, .out = wide},
                                {.layer = {.kind = Kind::upsample}, .in = in, .out = large}};
  Onednn backend(1);
  for (const Node& node : nodes) {
    CAPTURE(kind_name(node.layer.kind));
    const bool joins = is_join(node.layer), fused = node.layer.kind == Kind::norm || node.layer.kind == Kind::sum;
    const Slab<float> x(random_map(in, 1), {0, 4}, 16), other(random_map(in, 2), {0, 4}, 16);
    const Slab<float> y(node.out, {0, node.out.h}, 16), wanted(node.out, {0, node.out.h}, 16);
    const std::vector<float> weight(20, 0.5f), bias(20, -0.25f);
    Operands<float> o;
    o.op = Op::forward;
    o.node = &node;
    o.x = x.view(), o.y = wanted.view();
    if (joins) o.other = other.view();
    o.parameters = {weight.data(), bias.data()};
    host::run(o);
    if (fused) {
      Operands<float> f;
      f.op = Op::forward, f.node = &activation, f.x = wanted.view(), f.y = wanted.view();
      host::run(f);
      o.activation = &activation;
    }
    o.y = y.view();
    CHECK(backend.implementation(o) == "host");
    auto prepared = backend.prepare(o);
    backend.run(prepared, o);
    CHECK((y.intact() && same_bits(y.view(), wanted.view(), {0, node.out.h})));
  }
}
