// Every fault that a layer can have: when it is found, what is thrown at run time, and that the compile-time texts of
// network/witness.hpp are the same words (tests/compile_fail shows that compilers print them).
#include <lrcnn/network/table.hpp>
#include <doctest/doctest.h>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
constexpr std::array faults{Fault::empty_input, Fault::too_large,    Fault::bad_window,      Fault::bad_channels,   Fault::other_channels,
                            Fault::groups_in,   Fault::groups_out,   Fault::window_too_tall, Fault::pad_too_large,  Fault::window_too_large,
                            Fault::needs_rows,  Fault::needs_vector, Fault::norm_groups,     Fault::bad_norm,       Fault::bad_factor,
                            Fault::ceil_window, Fault::nothing_left, Fault::bad_reflection,  Fault::bad_pooled,     Fault::bad_probability,
                            Fault::bad_rules,   Fault::bad_row_rule, Fault::not_in_place,    Fault::bad_reference,  Fault::needs_other,
                            Fault::same_inputs, Fault::sum_channels, Fault::sum_extents,     Fault::concat_extents, Fault::scale_factors,
                            Fault::unused};
constexpr std::array training_faults{Fault::one_value, Fault::map_given};   // which fault_of() does not find
constexpr auto all_faults = [] {
  std::array<Fault, faults.size() + training_faults.size()> all{};
  std::copy(training_faults.begin(), training_faults.end(), std::copy(faults.begin(), faults.end(), all.begin()));
  return all;
}();
std::string name_of(Fault f) {
  constexpr std::array names{"none",           "empty_input", "too_large",       "bad_window",    "bad_channels",     "other_channels",
                             "groups_in",      "groups_out",  "window_too_tall", "pad_too_large", "window_too_large", "needs_rows",
                             "needs_vector",   "norm_groups", "bad_norm",        "bad_factor",    "ceil_window",      "nothing_left",
                             "bad_reflection", "bad_pooled",  "bad_probability", "bad_rules",     "bad_row_rule",     "not_in_place",
                             "bad_reference",  "needs_other", "same_inputs",     "sum_channels",  "sum_extents",      "concat_extents",
                             "scale_factors",  "unused",      "one_value",       "map_given"};
  return names[static_cast<std::size_t>(f)];
}
std::string text_of(Fault f) {
  const FaultText t = fault_text(f);
  return error_text(t.what, t.rule, t.change);
}
/// Lines of witness.hpp that define a rule or assert one: rule -> fault, rule -> text.
struct Witnesses {
  std::map<std::string, std::string> fault, text;
};
std::string between(const std::string& line, const std::string& before, const std::string& after) {
  const auto begin = line.find(before);
  if (begin == std::string::npos) return "";
  const auto end = line.find(after, begin + before.size());
  return line.substr(begin + before.size(), end - begin - before.size());
}
Witnesses read_witnesses() {
  Witnesses w;
  std::ifstream file(LRCNN_SOURCE_DIR "/include/lrcnn/network/witness.hpp");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    if (const auto rule = between(line, "inline constexpr bool ", " ="); !rule.empty()) w.fault[rule] = between(line, "fault != Fault::", ";");
    if (const auto rule = between(line, "static_assert(rule::", "<"); !rule.empty()) w.text[rule] = between(line, ", \"", "\");");
  }
  return w;
}
Layer conv(Index channels, Window w = {.kernel = 3, .pad = 1}, Index groups = 1) {
  return {.kind = Kind::conv, .window = w, .channels = channels, .groups = groups};
}
std::string thrown(const std::vector<Layer>& list, const Input& input) {
  try {
    make_table(list, input);
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "";
}
constexpr Shape usual{2, 6, 12, 10};
const Layer flatten{.kind = Kind::flatten}, pool2{.kind = Kind::max_pool, .window = {.kernel = 2, .stride = 2}}, gap{.kind = Kind::global_avg_pool};
}   // namespace
TEST_CASE("the compile-time text of each fault is its run-time text") {
  const Witnesses w = read_witnesses();
  CHECK(w.fault.size() == all_faults.size());
  CHECK(w.text.size() == all_faults.size());
  for (const Fault f : all_faults) {
    Index found = 0;
    for (const auto& [rule, fault] : w.fault)
      if (fault == name_of(f)) {
        ++found;
        REQUIRE(w.text.count(rule) == 1);
        CHECK(w.text.at(rule) == text_of(f));
      }
    CHECK(found == 1);
  }
}
TEST_CASE("each text has three parts in one line: what, rule, what to change") {
  for (const Fault f : all_faults) {
    const FaultText t = fault_text(f);
    for (const std::string_view part : {t.what, t.rule, t.change}) {
      CHECK(part.size() > 10);
      CHECK(part.find_first_of(";\n") == std::string_view::npos);
    }
    for (const Fault g : all_faults) CHECK((f == g || fault_text(g).what != t.what));
  }
}
TEST_CASE("each fault is found where it is, and thrown with layer, description, input and text") {
  struct Case {
    Fault fault;
    std::vector<Layer> list;
    Input input;
    std::string who;
  };
  static constexpr CustomLayer sees_all{.rules = {.name = "sees_all", .rows = RowMap::all}};
  static constexpr CustomLayer forgets_window{.rules = {.name = "forgets_window"}};
  static constexpr CustomLayer halves_in_place{.rules = {.name = "halves_in_place", .overwrites_input = true}};
  const Layer grouped = conv(6, {.kernel = 3, .pad = 1}, 4);
  Layer named = conv(6, {.kernel = 9});
  named.name = "tall";
  Layer named_relu{};
  named_relu.name = "side";
  const std::vector<Case> cases{
      {Fault::empty_input, {conv(4)}, {0, 3, 8, 8}, "layer 1 (conv to 4 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 0x3x8x8"},
      {Fault::empty_input, {pool2}, {1, 3, -8, 8}, "layer 1 (max_pool, kernel 2x2 stride 2x2 pad 0,0,0,0 dilation 1x1) on input 1x3x-8x8"},
      {Fault::too_large, {Layer{}}, {Index{1} << 32, 1, 65536, 65536}, "layer 1 (relu) on input 4294967296x1x65536x65536"},
      {Fault::too_large, {Layer{}}, {1, 1, Index{1} << 31, 1}, "layer 1 (relu) on input 1x1x2147483648x1"},
      {Fault::too_large, {Layer{}}, {1024, 1024, 4096, 4097}, "layer 1 (relu) on input 1024x1024x4096x4097"},
      {Fault::too_large,   // its output
       {conv(1'000'000)},
       {1, 1, 8192, 8192},
       "layer 1 (conv to 1000000 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 1x1x8192x8192"},
      {Fault::too_large,   // its filter
       {conv(2'000'000'000)},
       {1, 10'000, 1, 1},
       "layer 1 (conv to 2000000000 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 1x10000x1x1"},
      {Fault::too_large,
       {conv(4, {.kernel = 3, .pad = Index{1} << 40})},
       usual,
       "layer 1 (conv to 4 channels, kernel 3x3 stride 1x1 pad 1099511627776,1099511627776,1099511627776,1099511627776 dilation 1x1) on input "
       "2x6x12x10"},
      {Fault::bad_window,
       {conv(4), conv(4, {.kernel = 3, .stride = 0})},
       usual,
       "layer 2 (conv to 4 channels, kernel 3x3 stride 0x0 pad 0,0,0,0 dilation 1x1) on input 2x4x12x10"},
      {Fault::bad_channels, {conv(0)}, usual, "layer 1 (conv, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1) on input 2x6x12x10"},
      {Fault::other_channels, {conv(4), {.kind = Kind::norm, .channels = 16}}, usual, "layer 2 (batch_norm to 16 channels) on input 2x4x12x10"},
      {Fault::groups_in,
       {grouped},
       usual,
       "layer 1 (conv to 6 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1, groups 4) on input 2x6x12x10"},
      {Fault::groups_out,
       {conv(8), grouped},
       usual,
       "layer 2 (conv to 6 channels, kernel 3x3 stride 1x1 pad 1,1,1,1 dilation 1x1, groups 4) on input 2x8x12x10"},
      {Fault::window_too_tall,
       {pool2, named},
       usual,
       "layer 2 'tall' (conv to 6 channels, kernel 9x9 stride 1x1 pad 0,0,0,0 dilation 1x1) on input 2x6x6x5"},
      {Fault::pad_too_large,
       {{.kind = Kind::avg_pool, .window = {.kernel = 2, .pad = {0, 2, 0, 0}}}},
       usual,
       "layer 1 (avg_pool, kernel 2x2 stride 1x1 pad 0,2,0,0 dilation 1x1) on input 2x6x12x10"},
      {Fault::window_too_large,
       {{.kind = Kind::max_pool, .window = {.kernel = {257, 1}, .pad = {256, 0, 0, 0}}}},
       usual,
       "layer 1 (max_pool, kernel 257x1 stride 1x1 pad 256,0,0,0 dilation 1x1) on input 2x6x12x10"},
      {Fault::needs_rows,
       {flatten, {.kind = Kind::activation}, pool2},
       usual,
       "layer 3 (max_pool, kernel 2x2 stride 2x2 pad 0,0,0,0 dilation 1x1) on input 2x720x1x1"},
      {Fault::needs_rows, {flatten, gap}, usual, "layer 2 (global_avg_pool) on input 2x720x1x1"},
      {Fault::needs_vector, {conv(4), {.kind = Kind::linear, .channels = 10}}, usual, "layer 2 (linear to 10 channels) on input 2x4x12x10"},
      {Fault::norm_groups,
       {conv(6), {.kind = Kind::norm, .norm = {.over = Norm::Over::group, .groups = 4}}},
       usual,
       "layer 2 (group_norm, groups 4) on input 2x6x12x10"},
      {Fault::bad_norm, {{.kind = Kind::norm, .norm = {.epsilon = 0}}}, usual, "layer 1 (batch_norm) on input 2x6x12x10"},
      {Fault::bad_factor,
       {{.kind = Kind::upsample, .upsampling = {.rule = Upsampling::Rule::bilinear, .factor = {2, 0}}}},
       usual,
       "layer 1 (upsample by 2x0, bilinear) on input 2x6x12x10"},
      {Fault::needs_rows, {gap, flatten, {.kind = Kind::upsample}}, usual, "layer 3 (upsample by 2x2, nearest) on input 2x6x1x1"},
      {Fault::ceil_window,
       {conv(4, {.kernel = 2, .stride = 2, .ceil = true})},
       usual,
       "layer 1 (conv to 4 channels, kernel 2x2 stride 2x2 pad 0,0,0,0 dilation 1x1 ceil) on input 2x6x12x10"},
      {Fault::nothing_left,
       {{.kind = Kind::pad, .window = {.kernel = 1, .pad = {-6, -6, 0, 0}}}},
       usual,
       "layer 1 (pad by -6,-6,0,0, zeros) on input 2x6x12x10"},
      {Fault::bad_reflection,
       {{.kind = Kind::pad, .window = {.kernel = 1, .pad = {0, 0, 10, 0}}, .reflect = true}},
       usual,
       "layer 1 (pad by 0,0,10,0, reflected) on input 2x6x12x10"},
      {Fault::bad_pooled, {{.kind = Kind::adaptive_avg_pool, .pooled = {0, 7}}}, usual, "layer 1 (adaptive_avg_pool to 0x7) on input 2x6x12x10"},
      {Fault::bad_probability,
       {{.kind = Kind::dropout, .drop = {Drop::Each::channel, 1}}},
       usual,
       "layer 1 (spatial_dropout of 1.0) on input 2x6x12x10"},
      {Fault::bad_probability,
       {conv(4), {.kind = Kind::dropout, .drop = {Drop::Each::element, -0.25}}},
       usual,
       "layer 2 (dropout of -0.25) on input 2x4x12x10"},
      {Fault::bad_probability,
       {{.kind = Kind::dropout, .drop = {Drop::Each::image, std::nan("")}}},
       usual,
       "layer 1 (stochastic_depth of nan) on input 2x6x12x10"},
      {Fault::bad_reference, {pool2, {.input = 0}}, usual, "layer 2 (relu) on input 2x6x6x5"},
      {Fault::bad_reference, {pool2, {.other = 1}}, usual, "layer 2 (relu) on input 2x6x6x5"},
      {Fault::bad_reference,
       {pool2, {.kind = Kind::sum, .other = -1}},
       usual,
       "layer 2 (sum) on inputs 2x6x6x5 of layer 1 (pool) and 2x6x6x5 of layer 1 (pool)"},
      {Fault::needs_other, {conv(4), {.kind = Kind::concat}}, usual, "layer 2 (concat) on input 2x4x12x10"},
      {Fault::same_inputs,
       {conv(4), {.kind = Kind::sum, .other = 1}},
       usual,
       "layer 2 (sum) on inputs 2x4x12x10 of layer 1 (conv) and 2x4x12x10 of layer 1 (conv)"},
      {Fault::same_inputs, {{.kind = Kind::sum, .other = 9}}, usual, "layer 1 (sum) on inputs 2x6x12x10 of the input and 2x6x12x10 of the input"},
      {Fault::sum_channels,
       {conv(4), {.kind = Kind::sum, .other = 2}},
       usual,
       "layer 2 (sum) on inputs 2x4x12x10 of layer 1 (conv) and 2x6x12x10 of the input"},
      {Fault::sum_extents,
       {pool2, {.kind = Kind::sum, .other = 2}},
       usual,
       "layer 2 (sum) on inputs 2x6x6x5 of layer 1 (pool) and 2x6x12x10 of the input"},
      {Fault::concat_extents,
       {pool2, {.kind = Kind::concat, .other = 2}},
       usual,
       "layer 2 (concat) on inputs 2x6x6x5 of layer 1 (pool) and 2x6x12x10 of the input"},
      {Fault::scale_factors,
       {gap, conv(4), {.kind = Kind::scale, .input = 3, .other = 1}},
       usual,
       "layer 3 (scale) on inputs 2x6x12x10 of the input and 2x4x1x1 of layer 2 (conv)"},
      {Fault::bad_rules, {{.kind = Kind::custom, .custom = &sees_all}}, usual, "layer 1 (sees_all) on input 2x6x12x10"},
      {Fault::bad_row_rule,
       {{.kind = Kind::custom, .window = {.kernel = 3}, .custom = &forgets_window}},
       usual,
       "layer 1 (forgets_window, kernel 3x3 stride 1x1 pad 0,0,0,0 dilation 1x1) on input 2x6x12x10"},
      {Fault::not_in_place,
       {{.kind = Kind::custom, .channels = 3, .custom = &halves_in_place}},
       usual,
       "layer 1 (halves_in_place to 3 channels) on input 2x6x12x10"},
      {Fault::scale_factors,
       {pool2, {.kind = Kind::scale, .input = 2, .other = 1}},
       usual,
       "layer 2 (scale) on inputs 2x6x12x10 of the input and 2x6x6x5 of layer 1 (pool)"},
      {Fault::unused, {named_relu, {.input = 2}}, usual, "layer 1 'side' (relu) on input 2x6x12x10"}};
  std::map<Fault, int> seen;
  for (const Case& c : cases) {
    CAPTURE(c.who);
    const FaultText t = fault_text(c.fault);
    CHECK(thrown(c.list, c.input) == error_text(c.who + ": " + std::string(t.what), t.rule, t.change));
    ++seen[c.fault];
  }
  CHECK(seen.size() == faults.size());
}
namespace {
/// The fault of a custom layer with such rules on eight rows.
Fault fault_of_rules(const LayerRules& rules, Layer layer = {}) {
  const CustomLayer custom{.rules = rules};
  layer.kind = Kind::custom, layer.custom = &custom;
  return fault_of(layer, {1, 2, 8, 4});
}
template <Index numerator, Index denominator>
Shape rows_times(const Layer&, const Shape& in, const Shape&) {
  return {in.n, in.c, in.h * numerator / denominator, in.w};
}
}   // namespace
TEST_CASE("a custom layer may ask for what its functions are given, and for no more") {
  using enum Fault;
  for (const auto reads : {reads_nothing, reads_input, reads_output, reads_input_and_output, reads_input_for_parameters})
    CHECK(fault_of_rules({.name = "mine", .backward = reads}) == none);
  CHECK(fault_of_rules({.name = "mine", .sums_channels = true}) == none);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::all}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .reduces = true}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .ends_rows = true}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .uses_workspace = true}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .draws = true}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .backward = [](const Layer&) { return BackwardReads{.indices = true}; }}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .backward = [](const Layer&) { return BackwardReads{.sign = true}; }}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .backward = [](const Layer&) { return BackwardReads{.other = true}; }}) == bad_rules);
  CHECK(fault_of_rules({.name = "mine", .backward = [](const Layer&) { return BackwardReads{.for_parameters = true}; }}) == bad_rules);
}
TEST_CASE("a custom layer's rows are those of its rule") {
  using enum Fault;
  const Layer blur{.window = {.kernel = {3, 1}, .pad = {1, 0}}}, half{.window = {.kernel = 2, .stride = 2}};
  const auto axis_of = [](auto rule) { return rule; };
  const auto three = axis_of([](const Layer&, const Shape&) { return Axis{.kernel = 3, .pad_begin = 1, .pad_end = 1}; });
  const auto two = axis_of([](const Layer&, const Shape&) { return Axis{.kernel = 2, .stride = 2}; });
  const auto still = axis_of([](const Layer&, const Shape&) { return Axis{.stride = 0}; });
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::window}, blur) == none);
  CHECK(fault_of_rules({.name = "mine"}, blur) == bad_row_rule);   // the window would be ignored
  CHECK(fault_of_rules({.name = "mine", .output = rows_times<1, 2>}) == bad_row_rule);
  CHECK(fault_of_rules({.name = "mine", .output = rows_times<2, 1>}) == bad_row_rule);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::window, .output = rows_times<1, 2>}, half) == bad_row_rule);   // another width
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::window, .output = rows_times<2, 1>}, half) == bad_row_rule);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .axis = three}) == none);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .axis = two, .output = rows_times<1, 2>}) == none);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .axis = two}) == bad_row_rule);   // its last rows would read nothing
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .output = rows_times<2, 1>}) == bad_row_rule);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .axis = still}) == bad_row_rule);
  CHECK(fault_of_rules({.name = "mine", .rows = RowMap::own, .output = rows_times<0, 1>}) == bad_row_rule);
}
TEST_CASE("a custom layer works in place only where it keeps the shape") {
  using enum Fault;
  const Layer narrower{.channels = 1}, blur{.window = {.kernel = {3, 1}, .pad = {1, 0}}};
  for (const bool gradient : {false, true}) {
    const auto of = [&](LayerRules rules, const Layer& layer = {}) {
      (gradient ? rules.overwrites_gradient : rules.overwrites_input) = true;
      return fault_of_rules(rules, layer);
    };
    CHECK(of({.name = "mine"}) == none);
    CHECK(of({.name = "mine"}, narrower) == not_in_place);
    CHECK(of({.name = "mine", .rows = RowMap::window}, blur) == not_in_place);
    CHECK(of({.name = "mine", .rows = RowMap::own}) == not_in_place);
  }
}
TEST_CASE("a custom layer without a name is called custom") {
  CHECK(describe({.kind = Kind::custom, .custom = [] {
                    static const CustomLayer none;
                    return &none;
                  }()}) == "custom");
}
TEST_CASE("sizes up to the limits are no fault") {
  CHECK(fault_of({}, {1024, 1024, 4096, 4096}) == Fault::none);
  CHECK(fault_of({}, {1, 1, extent_limit - 1, 1}) == Fault::none);
  CHECK(fault_of({}, {unknown, 1024, 1 << 20, 1 << 14}) == Fault::none);
  CHECK(fault_of({}, {unknown, 1024, 1 << 20, 1 << 15}) == Fault::too_large);
  CHECK(fault_of({.kind = Kind::flatten}, {1, 1, 65536, 65536}) == Fault::too_large);   // a vector of 2^32 features
  static_assert(fault_of({}, {1, 1, Index{1} << 62, Index{1} << 62}) == Fault::too_large);
}
TEST_CASE("a layer that cannot choose its channels says none, or those that it gives") {
  const Shape other{2, 4, 12, 10}, factors{2, 6, 1, 1};
  static constexpr CustomLayer mine{.rules = {.name = "mine"}};
  struct Case {
    Layer layer;
    Shape second;
    Index gives;
  };
  for (Case c : {Case{{.kind = Kind::activation}, {}, 6}, Case{{.kind = Kind::max_pool}, {}, 6}, Case{{.kind = Kind::avg_pool}, {}, 6},
                 Case{{.kind = Kind::global_avg_pool}, {}, 6}, Case{{.kind = Kind::flatten}, {}, 720}, Case{{.kind = Kind::norm}, {}, 6},
                 Case{{.kind = Kind::sum, .other = 2}, usual, 6}, Case{{.kind = Kind::concat, .other = 2}, other, 10},
                 Case{{.kind = Kind::scale, .other = 2}, factors, 6}, Case{{.kind = Kind::upsample}, {}, 6}, Case{{.kind = Kind::pad}, {}, 6},
                 Case{{.kind = Kind::layer_scale}, {}, 6}, Case{{.kind = Kind::channel_shuffle}, {}, 6},
                 Case{{.kind = Kind::adaptive_avg_pool}, {}, 6}, Case{{.kind = Kind::dropout}, {}, 6}}) {
    CAPTURE(describe(c.layer));
    for (const Index channels : {Index{-1}, Index{0}, c.gives, c.gives + 1}) {
      c.layer.channels = channels;
      const bool fits = channels == 0 || channels == c.gives;
      CHECK(fault_of(c.layer, usual, false, c.second) == (fits ? Fault::none : Fault::other_channels));
      if (channels >= 0) CHECK(fault_of(c.layer, unknown_shape) == Fault::none);
      else CHECK(fault_of(c.layer, unknown_shape) == Fault::other_channels);
    }
  }
  for (const Kind kind : {Kind::conv, Kind::conv_transpose, Kind::custom})
    CHECK(fault_of({.kind = kind, .channels = 16, .custom = &mine}, usual) == Fault::none);
  CHECK(fault_of({.kind = Kind::linear, .channels = 16}, factors) == Fault::none);
}
TEST_CASE("what a window must be") {
  using enum Fault;
  const auto of = [](const Window& w, const Shape& in = usual) { return fault_of(conv(4, w), in); };
  CHECK(of({.kernel = 3}) == none);
  for (const Window& w :
       {Window{.kernel = {0, 3}}, Window{.kernel = {3, 0}}, Window{.stride = {0, 1}}, Window{.stride = {1, -1}}, Window{.dilation = {1, 0}},
        Window{.pad = {-1, 0, 0, 0}}, Window{.pad = {0, -1, 0, 0}}, Window{.pad = {0, 0, -1, 0}}, Window{.pad = {0, 0, 0, -1}}})
    CHECK(of(w) == bad_window);
  CHECK(of({.kernel = {12, 10}}) == none);
  CHECK(of({.kernel = {13, 10}}) == window_too_tall);
  CHECK(of({.kernel = {12, 11}}) == window_too_tall);
  CHECK(of({.kernel = {13, 10}, .pad = {1, 0, 0, 0}}) == none);
  CHECK(of({.kernel = {13, 10}, .pad = {0, 1, 0, 0}}) == none);
  CHECK(of({.kernel = {5, 1}, .dilation = {3, 1}}) == window_too_tall);   // spans 13 rows
  CHECK(of({.kernel = {7, 1}, .stride = {4, 1}}, {1, 6, 1, 1}) == window_too_tall);
  CHECK(of({.kernel = 1, .pad = 9}) == none);   // convolutions may have windows wholly in padding
}
TEST_CASE("a pool's padding is smaller than its window, border by border") {
  for (const Kind kind : {Kind::max_pool, Kind::avg_pool})
    for (Index k = 1; k <= 3; ++k)
      for (Index d = 1; d <= 2; ++d)
        for (Index pad = 0; pad <= 6; ++pad)
          for (int border = 0; border < 4; ++border) {
            Window w{.kernel = k, .dilation = d};
            (border == 0 ? w.pad.top : border == 1 ? w.pad.bottom : border == 2 ? w.pad.left : w.pad.right) = pad;
            CHECK(fault_of({.kind = kind, .window = w}, usual) == (pad >= (k - 1) * d + 1 ? Fault::pad_too_large : Fault::none));
          }
}
TEST_CASE("a pool with gaps between its places has one on the input, whatever the extent") {
  Index faulty = 0, sound = 0;
  for (Index extent = 1; extent <= 6; ++extent)
    for (Index k = 1; k <= 3; ++k)
      for (Index d = 1; d <= 5; ++d)
        for (Index pad = 0; pad <= (k - 1) * d; ++pad)
          for (Index stride = 1; stride <= 3; ++stride) {
            const Window w{.kernel = {1, k}, .stride = {1, stride}, .pad = {0, 0, pad, pad}, .dilation = {1, d}};
            const Index out = out_extent(column_axis(w), extent);
            if (out < 1) continue;
            bool misses = false;
            for (Index at = 0; at < out; ++at) {
              Index places = 0;
              for (Index tap = 0; tap < k; ++tap)
                if (const Index x = at * stride - pad + tap * d; x >= 0 && x < extent) ++places;
              misses = misses || places == 0;
            }
            (misses ? faulty : sound) += 1;
            CHECK((fault_of({.kind = Kind::max_pool, .window = w}, {1, 1, 4, extent}) == Fault::pad_too_large) == misses);
            CHECK(fault_of({.kind = Kind::max_pool, .window = w}, {1, 1, 4, unknown}) == Fault::none);
          }
  const Index most = extent_limit - 1;   // answered at once, however many windows there are
  CHECK(fault_of({.kind = Kind::max_pool, .window = {.kernel = 1, .stride = 1, .dilation = most}}, {1, 1, most - 1, 1}) == Fault::none);
  CHECK(fault_of({.kind = Kind::avg_pool, .window = {.kernel = {2, 1}, .stride = 1, .pad = {most / 2, most / 2, 0, 0}, .dilation = {most / 2, 1}}},
                 {1, 1, most / 4, 1}) == Fault::pad_too_large);
  CHECK(faulty > 10);
  CHECK(sound > 100);
}
TEST_CASE("groups divide input and output channels") {
  for (Index c = 1; c <= 8; ++c)
    for (Index k = 1; k <= 8; ++k)
      for (Index g = 1; g <= 8; ++g) {
        const Fault fault = fault_of(conv(k, {.kernel = 1}, g), {1, c, 4, 4});
        CHECK(fault == (c % g != 0 ? Fault::groups_in : k % g != 0 ? Fault::groups_out : Fault::none));
      }
  CHECK(fault_of(conv(4, {.kernel = 1}, 0), usual) == Fault::bad_channels);
  CHECK(fault_of(conv(-4, {.kernel = 1}), usual) == Fault::bad_channels);
}
TEST_CASE("extents that are not known yet raise no fault, those that are do") {
  const Shape none{unknown, unknown, unknown, unknown};
  CHECK(fault_of(conv(4, {.kernel = 99}), none) == Fault::none);
  CHECK(fault_of(conv(6, {.kernel = 3}, 4), none) == Fault::groups_out);
  CHECK(fault_of(conv(6, {.kernel = 3}, 3), {unknown, 4, unknown, unknown}) == Fault::groups_in);
  CHECK(fault_of(conv(4, {.kernel = 99}), {unknown, unknown, unknown, 50}) == Fault::window_too_tall);
  CHECK(fault_of({.kind = Kind::linear, .channels = 3}, none) == Fault::none);
  CHECK(fault_of({.kind = Kind::linear, .channels = 3}, {unknown, unknown, 1, 2}) == Fault::needs_vector);
  CHECK(fault_of(pool2, none, true) == Fault::needs_rows);
  const Shape after = output_shape(conv(4, {.kernel = 3}), {unknown, 3, unknown, 9});
  CHECK(after == Shape{unknown, 4, unknown, 7});
  CHECK(output_shape(flatten, {2, 3, unknown, 4}) == Shape{2, unknown, 1, 1});
  CHECK(output_shape(gap, none) == Shape{unknown, unknown, 1, 1});
}
TEST_CASE("what a norm must be") {
  using Over = Norm::Over;
  const auto of = [](const Norm& norm, Index channels = 6) { return fault_of({.kind = Kind::norm, .norm = norm}, {1, channels, 4, 4}); };
  for (const Over over : {Over::batch, Over::group, Over::channels}) CHECK(of({.over = over}) == Fault::none);
  for (Index groups = 0; groups <= 7; ++groups)
    CHECK((of({.over = Over::group, .groups = groups}) == Fault::none) == (groups == 0 || 6 % groups == 0));
  CHECK(of({.over = Over::group, .groups = 4}, unknown) == Fault::none);
  CHECK(of({.over = Over::group, .groups = -1}) == Fault::bad_norm);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) CHECK(of({.epsilon = bad}) == Fault::bad_norm);
  for (const double bad : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) CHECK(of({.momentum = bad}) == Fault::bad_norm);
  for (const double good : {0.0, 1.0}) CHECK(of({.momentum = good}) == Fault::none);
}
TEST_CASE("joins compare the extents that are known, and know what either branch knows") {
  const Layer sum{.kind = Kind::sum, .other = 2}, concat{.kind = Kind::concat, .other = 2};
  const auto faults_of = [&](const Shape& a, const Shape& b) { return std::pair(fault_of(sum, a, false, b), fault_of(concat, a, false, b)); };
  const std::pair fine{Fault::none, Fault::none};
  CHECK(faults_of(usual, usual) == fine);
  CHECK(faults_of(usual, unknown_shape) == fine);
  CHECK(faults_of(unknown_shape, usual) == fine);
  CHECK(faults_of(usual, {2, 7, 12, 10}) == std::pair{Fault::sum_channels, Fault::none});
  for (const Shape& other : {Shape{3, 6, 12, 10}, Shape{2, 6, 11, 10}, Shape{2, 6, 12, 9}, Shape{unknown, unknown, unknown, 9}})
    CHECK(faults_of(usual, other) == std::pair{Fault::sum_extents, Fault::concat_extents});
  CHECK(output_shape(sum, {unknown, 4, unknown, 7}, {2, unknown, 5, 7}) == Shape{2, 4, 5, 7});
  CHECK(output_shape(concat, {unknown, 4, unknown, 7}, {2, 3, 5, 7}) == Shape{2, 7, 5, 7});
  CHECK(output_shape(concat, {unknown, 4, unknown, 7}, {2, unknown, 5, 7}) == Shape{2, unknown, 5, 7});
  CHECK(output_shape({.kind = Kind::upsample, .upsampling = {.factor = {2, 3}}}, {1, 5, 4, unknown}) == Shape{1, 5, 8, unknown});
}
TEST_CASE("what padding, cropping and reflection leave") {
  const auto of = [](const Pad& pad, bool reflect, const Shape& in = usual) {
    return fault_of({.kind = Kind::pad, .window = {.kernel = 1, .pad = pad}, .reflect = reflect}, in);
  };
  CHECK(of({-6, -5, -4, -5}, false) == Fault::none);
  CHECK(of({-12, 1, 0, 0}, false) == Fault::none);   // rows of padding alone
  CHECK(of({-6, -6, 0, 0}, false) == Fault::nothing_left);
  CHECK(of({0, 0, -10, 0}, false) == Fault::nothing_left);
  CHECK(of({-99, -99, 0, 0}, false, unknown_shape) == Fault::none);
  CHECK(of({11, 11, 9, 9}, true) == Fault::none);
  for (const Pad& pad : {Pad{12, 0, 0, 0}, Pad{0, 12, 0, 0}, Pad{0, 0, 10, 0}, Pad{0, 0, 0, 10}, Pad{-1, 0, 0, 0}})
    CHECK(of(pad, true) == Fault::bad_reflection);
  CHECK(of({99, 0, 0, 0}, true, unknown_shape) == Fault::none);
  CHECK(of({-1, 0, 0, 0}, true, unknown_shape) == Fault::bad_reflection);
  CHECK(fault_of({.kind = Kind::pad, .window = {.kernel = 3}}, usual) == Fault::bad_window);
  CHECK(output_shape({.kind = Kind::pad, .window = {.kernel = 1, .pad = {-1, 2, 3, -4}}}, {1, 5, 4, unknown}) == Shape{1, 5, 5, unknown});
}
TEST_CASE("a transposed convolution goes from a convolution's output to its input") {
  const auto transposed = [](Index channels, const Window& w, Index groups = 1) {
    return Layer{.kind = Kind::conv_transpose, .window = w, .channels = channels, .groups = groups};
  };
  for (Index k = 1; k <= 4; ++k)
    for (Index s = 1; s <= 3; ++s)
      for (Index pad = 0; pad < k; ++pad) {
        const Window w{.kernel = k, .stride = s, .pad = pad};
        const Shape large{1, 3, 4 * s + k - 2 * pad, 5 * s + k - 2 * pad};
        if (fault_of(conv(2, w), large) != Fault::none) continue;
        const Shape small = output_shape(conv(2, w), large);
        CHECK(output_shape(transposed(3, w), small) == large);
      }
  CHECK(fault_of(transposed(4, {.kernel = 2, .pad = 1}), {1, 6, 1, 4}) == Fault::nothing_left);
  CHECK(fault_of(transposed(4, {.kernel = 2, .pad = 1}), unknown_shape) == Fault::none);
  CHECK(fault_of(transposed(4, {.kernel = 2}, 4), usual) == Fault::groups_in);
  CHECK(fault_of(transposed(4, {.kernel = 2}, 3), usual) == Fault::groups_out);
  CHECK(fault_of(transposed(0, {.kernel = 2}), usual) == Fault::bad_channels);
  CHECK(fault_of(transposed(2, {.stride = 0}), usual) == Fault::bad_window);
  CHECK(fault_of(transposed(2, {.stride = 2, .ceil = true}), usual) == Fault::ceil_window);
  CHECK(fault_of(transposed(2, {.kernel = 2}), usual, true) == Fault::needs_rows);
  CHECK(output_shape(transposed(3, {.kernel = 2, .stride = 2}), {unknown, 7, 5, unknown}) == Shape{unknown, 3, 10, unknown});
}
TEST_CASE("a shuffle's groups divide the channels") {
  const auto of = [](Index groups, Index channels) { return fault_of({.kind = Kind::channel_shuffle, .groups = groups}, {1, channels, 2, 2}); };
  for (Index g = 1; g <= 7; ++g) CHECK(of(g, 6) == (6 % g == 0 ? Fault::none : Fault::groups_in));
  CHECK(of(0, 6) == Fault::bad_channels);
  CHECK(of(4, unknown) == Fault::none);
}
TEST_CASE("after a layer that ends the rows only layers without rows may come") {
  const Shape vector{2, 6, 1, 1};
  CHECK(fault_of({.kind = Kind::activation}, vector, true) == Fault::none);
  CHECK(fault_of({.kind = Kind::linear, .channels = 2}, vector, true) == Fault::none);
  CHECK(fault_of(flatten, vector, true) == Fault::none);
  for (const Layer& y :
       {conv(2, {.kernel = 1}), Layer{.kind = Kind::max_pool, .window = {.kernel = 1}}, Layer{.kind = Kind::avg_pool, .window = {.kernel = 1}}, gap})
    CHECK(fault_of(y, vector, true) == Fault::needs_rows);
  CHECK(thrown({gap, conv(2, {.kernel = 1})}, usual) == "");   // a global pooling leaves a map of one row
}
