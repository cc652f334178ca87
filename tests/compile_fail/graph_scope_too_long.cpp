// A scope that leaves no room for the names in it.
// EXPECT: lrcnn: a layer's name with its scope is too long; names have at most 47 characters; shorten the scope or the name
// EXPECT: Scope<
#include <lrcnn/layer/activation.hpp>
#include <lrcnn/layer/conv.hpp>
#include <lrcnn/layer/norm.hpp>
#include <lrcnn/layer/pool.hpp>
#include <lrcnn/network/graph.hpp>
using namespace lrcnn;
#ifdef LRCNN_FAIL
using Net = Scope<"a_scope_of_exactly_forty_two_characters_xx", Named<"conv1", Conv<4>>>;
#else
using Net = Scope<"a_scope_of_exactly_forty_one_characters_x", Named<"conv1", Conv<4>>>;
#endif
static_assert(Net::layers.size() > 0);
