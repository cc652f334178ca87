// The table of docs/layers.md says of every kind of layer what its row of rules says.
#include <lrcnn/layer/layers.hpp>
#include <lrcnn/layer/statistics.hpp>
#include <doctest/doctest.h>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>
using namespace lrcnn;
namespace {
struct Elu {
  static constexpr std::string_view name = "elu";
  template <class T>
  static T value(T x) {
    return x;
  }
  template <class T>
  static T derivative(T) {
    return 1;
  }
};
/// What the page calls each layer, in the first column.
const std::vector<std::pair<std::string, Layer>> layers{{"`Conv<K>`", Conv<8>::layer()},
                                                        {"`ConvTranspose<K>`", ConvTranspose<8>::layer()},
                                                        {"`Linear<K>`", Linear<8>::layer()},
                                                        {"`Flatten`", Flatten::layer()},
                                                        {"`MaxPool<>`", MaxPool<>::layer()},
                                                        {"`AvgPool<>`", AvgPool<>::layer()},
                                                        {"`AdaptiveAvgPool<P, Q>`", AdaptiveAvgPool<2>::layer()},
                                                        {"`GlobalAvgPool`", GlobalAvgPool::layer()},
                                                        {"`ReLU`", ReLU::layer()},
                                                        {"`LeakyReLU<>`", LeakyReLU<>::layer()},
                                                        {"`ReLU6`", ReLU6::layer()},
                                                        {"`SiLU`", SiLU::layer()},
                                                        {"`GELU`", GELU::layer()},
                                                        {"`Hardswish`", Hardswish::layer()},
                                                        {"`Sigmoid`", Sigmoid::layer()},
                                                        {"`Hardsigmoid`", Hardsigmoid::layer()},
                                                        {"`Pointwise<F>`", Pointwise<Elu>::layer()},
                                                        {"`BatchNorm`", BatchNorm::layer()},
                                                        {"`ZeroBatchNorm`", ZeroBatchNorm::layer()},
                                                        {"`BatchNormWith<>`", BatchNormWith<>::layer()},
                                                        {"`FrozenBatchNorm`", FrozenBatchNorm::layer()},
                                                        {"`GroupNorm<G>`", GroupNorm<2>::layer()},
                                                        {"`InstanceNorm`", InstanceNorm::layer()},
                                                        {"`LayerNorm`", LayerNorm::layer()},
                                                        {"`SlabBatchNorm`", SlabBatchNorm::layer()},
                                                        {"`LayerScale<>`", LayerScale<>::layer()},
                                                        {"`Dropout<P>`", Dropout<>::layer()},
                                                        {"`SpatialDropout<P>`", SpatialDropout<>::layer()},
                                                        {"`StochasticDepth<P>`", StochasticDepth<std::ratio<1, 2>>::layer()},
                                                        {"`Upsample<f>`", Upsample<>::layer()},
                                                        {"`ZeroPad<>`", ZeroPad<1>::layer()},
                                                        {"`Crop<>`", Crop<1>::layer()},
                                                        {"`ReflectPad<>`", ReflectPad<1>::layer()},
                                                        {"`ChannelShuffle<G>`", ChannelShuffle<2>::layer()},
                                                        {"`Sum<A, B>`", {.kind = Kind::sum}},
                                                        {"`Concat<A, B>`", {.kind = Kind::concat}},
                                                        {"`Scale<Map, Factors>`", {.kind = Kind::scale}}};
/// Rows of the table that are put together of several layers, or stand for layers of a program's own.
const std::set<std::string> composed{"`Residual<Body>`", "`SqueezeExcitation<C, R>`", "custom layers ([Extending](extending.md))"};
struct Row {
  std::string computes, reads, learns, backward, cudnn;
};
std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}
bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
/// The page's rows, by each name of their first column.
std::map<std::string, Row> table_of_page() {
  std::ifstream page(LRCNN_SOURCE_DIR "/docs/layers.md");
  REQUIRE(page.good());
  std::map<std::string, Row> rows;
  std::string line;
  while (std::getline(page, line) && line.rfind("| descriptor |", 0) != 0) {
  }
  std::getline(page, line);
  while (std::getline(page, line) && line.rfind("| ", 0) == 0) {
    std::vector<std::string> cells;
    std::istringstream text(line.substr(1));
    for (std::string cell; std::getline(text, cell, '|');) cells.push_back(trimmed(cell));
    REQUIRE(cells.size() >= 6);
    const Row row{cells[1], cells[2], cells[3], cells[4], cells[5]};
    for (std::size_t at = 0; at < cells[0].size();) {   // names end in a backquote and a comma
      const std::size_t end = cells[0].find("`, ", at);
      rows[cells[0].substr(at, end == std::string::npos ? end : end + 1 - at)] = row;
      at = end == std::string::npos ? cells[0].size() : end + 3;
    }
  }
  return rows;
}
/// "weight, bias; running mean and variance"
std::string learnt(const Layer& layer) {
  const ParameterShapes shapes = rules_of(layer).parameters(layer, {1, 8, 4, 4});
  std::string text;
  bool running = false;
  for (std::size_t p = 0; p < static_cast<std::size_t>(shapes.count); ++p) {
    if (shapes.item[p].running) running = true;
    else text += (text.empty() ? "" : ", ") + std::string(shapes.item[p].name.view());
  }
  return text + (running ? "; running mean and variance" : "");
}
}   // namespace
TEST_CASE("the page of layers has every kind, and says what its rules say") {
  const auto rows = table_of_page();
  std::set<Kind> kinds;
  std::set<std::string> named = composed;
  for (const auto& [name, layer] : layers) {
    CAPTURE(name);
    kinds.insert(layer.kind), named.insert(name);
    const auto found = rows.find(name);
    REQUIRE(found != rows.end());
    const Row& row = found->second;
    const LayerRules& rules = rules_of(layer);
    const BackwardReads backward = rules.backward(layer);
    const bool waits = has_statistics(layer, true), frozen = layer.norm.frozen;
    CHECK(holds(row.reads, "barrier") == (rules.rows == RowMap::all || waits));
    CHECK((row.reads.rfind("row p", 0) == 0 && !holds(row.reads, "row p - t")) == (rules.rows == RowMap::same && layer.kind != Kind::linear));
    CHECK((holds(row.reads, "as `Conv`") || holds(row.reads, "ps - t")) == (rules.rows == RowMap::window));
    CHECK((frozen ? "weight, bias; running mean and variance" : row.learns == "as `BatchNorm`" ? "weight, bias" : row.learns) == learnt(layer));
    const bool as_batch_norm = row.backward == "as `BatchNorm`";
    CHECK((holds(row.backward, "input") || holds(row.backward, "both") || as_batch_norm) == backward.input);
    CHECK(holds(row.backward, "both") == backward.other);
    CHECK(holds(row.backward, "(for the ") == backward.for_parameters);
    CHECK(holds(row.backward, "a byte") == backward.indices);
    CHECK(holds(row.backward, "sign") == backward.sign);
    CHECK((holds(row.backward, "sums") || as_batch_norm) == waits);
    CHECK((row.cudnn == "yes") == (layer.kind != Kind::custom));
  }
  for (std::size_t k = 0; k < kind_count; ++k) {
    CAPTURE(kind_name(static_cast<Kind>(k)));
    CHECK(kinds.contains(static_cast<Kind>(k)));
  }
  for (const auto& [name, row] : rows) {
    CAPTURE(name);
    CHECK(named.contains(name));
  }
}
