#pragma once
// Forward graphs in files of JSON:
//   {"name": "small",
//    "nodes": [{"id": 0, "op": "Convolution", "bytes": 4096, "time": 10}, {"id": 1, "op": "ReLU", "bytes": 4096, "time": 1}],
//    "edges": [[0, 1]]}
// Of a node, `bytes` are those of its output and `time` is that of its forward step, integers both; ids are integers, each of one node. An edge
// [a, b] says that the node with id b reads the output of that with id a. `name` and `op` may be left out, and what else there is is not read.
#include <lrcnn/plan/recomputation_graph.hpp>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
/// A graph as its file has it.
struct GraphFile {
  lrcnn::RecomputationGraph graph{};
  std::vector<lrcnn::Index> ids{};   ///< of the nodes
  std::string name{};                ///< the file's own, or its path
};
/// Reads one file.
class GraphReader {
 public:
  explicit GraphReader(std::string path) : path_(std::move(path)), who_("graph file '" + path_ + "'") {}
  /// Errors: lrcnn::DataError naming the file, and the line, node or edge, if it cannot be read, is no JSON, or holds no graph.
  GraphFile read() const {
    const nlohmann::json file = parse(text());
    if (!file.is_object()) fault("", "holds " + shown(file), "a graph is an object", "write {\"nodes\": [...], \"edges\": [...]}");
    GraphFile result;
    result.name = optional_text(file, "name", "");
    if (result.name.empty()) result.name = path_;
    std::map<lrcnn::Index, lrcnn::Index> place;   // of each id
    const auto& nodes = list(file, "nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string where = ", node " + std::to_string(i);
      const auto& node = nodes[i];
      if (!node.is_object()) fault(where, "is " + shown(node), "a node is an object", "write {\"id\": 0, \"bytes\": 4096, \"time\": 1}");
      const lrcnn::Index id = integer(member(node, "id", where), where, "\"id\"");
      if (const auto [known, added] = place.emplace(id, i); !added)
        fault(where, "has the id " + std::to_string(id) + " of node " + std::to_string(known->second), "an id belongs to one node",
              "give it an id of its own");
      const std::string op = optional_text(node, "op", where);
      result.graph.nodes.push_back({(op.empty() ? "" : op + ", ") + "id " + std::to_string(id),
                                    integer(member(node, "bytes", where), where, "\"bytes\""),
                                    integer(member(node, "time", where), where, "\"time\"")});
      result.ids.push_back(id);
    }
    const auto& edges = list(file, "edges");
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const std::string where = ", edge " + std::to_string(i);
      const auto& edge = edges[i];
      if (!edge.is_array() || edge.size() != 2) fault(where, "is " + shown(edge), "an edge is a pair of ids", "write it as in [0, 1]");
      std::array<lrcnn::Index, 2> ends{};
      for (std::size_t e = 0; e < 2; ++e) {
        const auto at = place.find(integer(edge[e], where, "an end"));
        if (at == place.end())
          fault(where, "names id " + shown(edge[e]) + ", which no node has", "an edge joins two nodes of the file", "name one of their ids");
        ends[e] = at->second;
      }
      result.graph.edges.push_back({ends[0], ends[1]});
    }
    lrcnn::check_graph(result.graph, who_);
    return result;
  }

 private:
  std::string path_, who_;
  [[noreturn]] void fault(const std::string& where, const std::string& what, const std::string& rule, const std::string& change) const {
    throw lrcnn::DataError(lrcnn::error_text(who_ + where + " " + what, rule, change));
  }
  std::string text() const {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream text;
    if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
    if (!in.is_open() || in.bad() || text.str().empty())
      fault("",
            !in.is_open() ? "cannot be opened"
            : in.bad()    ? "cannot be read"
                          : "is empty or no file",
            "a graph is read from a file of JSON", "check the path");
    return text.str();
  }
  /// No key of an object may be there twice: of the two values one would be lost.
  nlohmann::json parse(const std::string& text) const {
    std::vector<std::set<std::string>> keys;
    const auto watch = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
      if (event == nlohmann::json::parse_event_t::object_start) keys.emplace_back();
      if (event == nlohmann::json::parse_event_t::object_end) keys.pop_back();
      if (event == nlohmann::json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
        fault("", "has " + shown(value) + " twice in one object", "a key has one value", "remove one of them");
      return true;
    };
    try {
      return nlohmann::json::parse(text, watch);
    } catch (const nlohmann::json::parse_error& e) {
      const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), e.byte > 0 ? e.byte - 1 : 0));
      const std::string reason = e.what();
      const std::size_t colon = reason.find(": ", reason.find("column"));
      fault(", line " + std::to_string(1 + std::count(text.begin(), end, '\n')),
            "is no JSON: " + (colon == std::string::npos ? reason : reason.substr(colon + 2)), "a graph is read from a file of JSON",
            "mend the file there, or check the path");
    } catch (const nlohmann::json::exception& e) {
      const std::string reason = e.what();
      fault("", "cannot be used: " + reason.substr(std::min(reason.size(), reason.find("] ") + 2)), "numbers are integers below 2^63",
            "write smaller numbers");
    }
  }
  static std::string shown(const nlohmann::json& value) {
    std::string text = value.dump(-1, ' ', true);
    if (text.size() > 40) text = text.substr(0, 40) + "...";
    return text;
  }
  const nlohmann::json& member(const nlohmann::json& object, const std::string& key, const std::string& where) const {
    const auto found = object.find(key);
    if (found == object.end()) fault(where, "has no \"" + key + "\"", "a graph has nodes and edges, a node an id, bytes and a time", "add it");
    return *found;
  }
  const nlohmann::json& list(const nlohmann::json& file, const std::string& key) const {
    const nlohmann::json& found = member(file, key, "");
    if (!found.is_array()) fault("", "has " + shown(found) + " as \"" + key + "\"", "nodes and edges are arrays", "write \"" + key + "\": [...]");
    return found;
  }
  std::string optional_text(const nlohmann::json& object, const std::string& key, const std::string& where) const {
    const auto found = object.find(key);
    if (found == object.end()) return {};
    if (!found->is_string()) fault(where, "has " + shown(*found) + " as \"" + key + "\"", "that is a text", "put it into quotation marks");
    return found->get<std::string>();
  }
  lrcnn::Index integer(const nlohmann::json& value, const std::string& where, const std::string& what) const {
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
    if (!fits) fault(where, "has " + shown(value) + " as " + what, "ids, bytes and times are integers below 2^63", "write an integer");
    return value.get<lrcnn::Index>();
  }
};
