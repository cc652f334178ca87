#!/usr/bin/env bash
# graph.sh PLAN: what `plan --graph` says of graphs, and of files and arguments it cannot use.
set -u
. "$(dirname "${BASH_SOURCE[0]}")/ends.sh"
plan=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
small=$here/small_graph.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# The last line is the least budget, alone, and a strategy fits it.
least=$("$plan" --graph "$small" --least | tail -n 1)
[ "$least" = 49152 ] || { echo "FAILED: the least budget is '$least', wanted 49152"; failures=$((failures + 1)); }
ends 0 '^peak 49152 bytes \(49\.2 kB\)$' "$plan" --graph "$small" --budget "$least"
ends 0 '^overhead 11 of a forward pass of 44 \(25\.0 %\)$' "$plan" --graph "$small" --budget 48KiB
ends 0 '^ +2 +12\.3 kB  2-3; 2-3$' "$plan" --graph "$small" --budget 48KiB
ends 0 '^family exact: 10 lower sets$' "$plan" --graph "$small" --budget 1GB --family exact
ends 0 '^overhead 1 of' "$plan" --graph "$small" --budget 9223372036854775807
ends 0 '^ +1 +49\.2 kB  0-7; -$' "$plan" --graph "$small" --budget 1GB --objective memory
# As JSON, and nothing else.
cat >check.py <<'PY'
import json, sys
answer = json.load(sys.stdin)
assert answer["graph"] == "small" and answer["nodes"] == 8 and answer["edges"] == 8 and answer["time"] == 44, answer
assert answer["budget"] == 60000 and answer["least_budget"] == 49152 and answer["peak"] <= 60000, answer
assert sorted(v for s in answer["segments"] for v in s["nodes"]) == list(range(8)), answer
kept = {v for s in answer["segments"] for v in s["kept"]}
assert answer["overhead"] == sum(t for v, t in enumerate([10, 1, 10, 10, 1, 10, 1, 1]) if v not in kept), answer
PY
"$plan" --graph "$small" --budget 60000 --least --json | python3 check.py || { echo "FAILED: --json"; failures=$((failures + 1)); }
ends 0 '^overhead ' "$plan" --graph "$small" --budget 60000 --least --json answer.json
python3 check.py <answer.json || { echo "FAILED: --json FILE"; failures=$((failures + 1)); }
# Arguments.
refuses "no strategy has a peak of at most 49151 bytes; .*family wide, the least feasible budget is 49152 bytes; .*or try family exact$" \
  "$plan" --graph "$small" --budget 49151
refuses "least feasible budget is 49152 bytes; allow at least so many$" "$plan" --graph "$small" --budget 1 --family exact --least
for bytes in 0 -1 lots 1e3; do refuses "no number of bytes: '$bytes'; bytes are a number from 1 to 1000T" "$plan" --graph "$small" --budget "$bytes"; done
refuses "nothing is asked of graph file '$small'; --budget asks .* give one of them, or both$" "$plan" --graph "$small"
refuses "leaves 5 B for a step on input 8x1x28x28; the fewest bytes that a plan was found for are " "$plan" lenet 8x1x28x28 --budget 5
refuses "--graph: the text behind it is empty" "$plan" --graph "" --least
refuses "--least requires --graph" "$plan" --least
refuses "^lrcnn: nothing is asked that could be answered as JSON; --json is for graphs, and for the kernels of a step on a GPU; give --graph, or --kernels and --device$" \
  "$plan" --json
refuses "NETWORK excludes --graph" "$plan" vgg16 --graph "$small" --least
refuses "--family: most not in \{exact,approx,order,wide\}" "$plan" --graph "$small" --least --family most
refuses "--objective: speed not in \{time,memory\}" "$plan" --graph "$small" --least --objective speed
# Files. file TEXT WANTED: a file with this text is refused with these words.
file() {
  printf '%b' "$1" >graph.json
  refuses "^lrcnn: graph file 'graph.json'$2" "$plan" --graph graph.json --least
}
refuses "^lrcnn: graph file 'nowhere.json' cannot be opened; a graph is read from a file of JSON; check the path$" "$plan" --graph nowhere.json --least
refuses "^lrcnn: graph file '$scratch' cannot be read; " "$plan" --graph "$scratch" --least
file '' " is empty or no file; "
file '{"nodes": [\n {"id": 0,\n  "bytes" 5}]}' ", line 3 is no JSON: syntax error while parsing object separator - unexpected number literal"
file '{"nodes": [' ", line 1 is no JSON: .*unexpected end of input"
file '{"nodes": []} []' ", line 1 is no JSON: .*expected end of input"
file '[1, 2]' " holds \[1,2\]; a graph is an object"
file '{"edges": []}' ' has no "nodes"; a graph has nodes and edges, a node an id, bytes and a time; add it$'
file '{"nodes": []}' ' has no "edges"; '
file '{"nodes": {}, "edges": []}' ' has \{\} as "nodes"; nodes and edges are arrays'
file '{"nodes": [], "edges": []}' " has no nodes; "
file '{"nodes": [], "edges": [], "nodes": []}' ' has "nodes" twice in one object; '
file '{"nodes": [], "edges": [], "name": 7}' ' has 7 as "name"; '
# nodes TEXT [EDGES]: a file with these nodes.
nodes() { printf '{"nodes": [%s], "edges": [%s]}' "$1" "${2:-}"; }
two='{"id": 4, "op": "ReLU", "bytes": 5, "time": 1}, {"id": 9, "bytes": 5, "time": 1}'
file "$(nodes 7)" ", node 0 is 7; a node is an object"
file "$(nodes '{"bytes": 5, "time": 1}')" ', node 0 has no "id"; '
file "$(nodes '{"id": 4, "time": 1}')" ', node 0 has no "bytes"; '
file "$(nodes '{"id": 4, "bytes": 5}')" ', node 0 has no "time"; '
file "$(nodes '{"id": 4, "bytes": 1.5, "time": 1}')" ', node 0 has 1\.5 as "bytes"; ids, bytes and times are integers below 2\^63; write an integer$'
file "$(nodes '{"id": 4, "bytes": "5", "time": 1}')" ', node 0 has "5" as "bytes"; '
file "$(nodes '{"id": 4, "bytes": 5, "time": null}')" ', node 0 has null as "time"; '
file "$(nodes '{"id": 4, "bytes": 9223372036854775808, "time": 1}')" ', node 0 has 9223372036854775808 as "bytes"; '
file "$(nodes '{"id": 4, "bytes": 1e999, "time": 1}')" " cannot be used: number overflow parsing '1e999'; "
file "$(nodes '{"id": 4, "bytes": -5, "time": 1}')" ", node 0 \(id 4\): its bytes are -5; "
file "$(nodes '{"id": 4, "op": "ReLU", "bytes": 5, "time": -1}')" ", node 0 \(ReLU, id 4\): its time is -1; "
file "$(nodes '{"id": 4, "bytes": 4611686018427387904, "time": 1}')" ", node 0 \(id 4\): its bytes are 4611686018427387904, with which the sum goes beyond"
file "$(nodes "$two, {\"id\": 1, \"bytes\": 5, \"time\": 9223372036854775806}")" ", node 2 \(id 1\): its time is 9223372036854775806, with which the sum"
file "$(nodes "$two, $two")" ", node 2 has the id 4 of node 0; "
file "$(nodes "$two" '[4]')" ", edge 0 is \[4\]; an edge is a pair of ids"
file "$(nodes "$two" '[4, "x"]')" ', edge 0 has "x" as an end; '
file "$(nodes "$two" '[4, 9], [4, 7]')" ", edge 1 names id 7, which no node has; "
file "$(nodes "$two" '[4, 4]')" ", edge 0 leads from node 0 \(ReLU, id 4\) to itself; "
file "$(nodes "$two" '[4, 9], [4, 9]')" ", edges 0 and 1 both lead from node 0 \(ReLU, id 4\) to node 1 \(id 9\); "
file "$(nodes "$two" '[4, 9], [9, 4]')" " has a cycle: node 0 \(ReLU, id 4\) -> node 1 \(id 9\) -> node 0 \(ReLU, id 4\); "
# Nodes that are not in topological order are sorted, which the program says.
nodes "$two" '[9, 4]' >graph.json
ends 0 "The file does not list the nodes in topological order; they were sorted" "$plan" --graph graph.json --least --family order
ends 0 "^ +1 +10 B  9 4; -$" "$plan" --graph graph.json --budget 20 --objective memory
# More sets than can be compared.
many=$(for id in $(seq 25); do printf '{"id": %s, "bytes": 1, "time": 1},' "$id"; done)
nodes "${many%,}" >graph.json
refuses "the graph has more than 100000 lower sets in family exact; " "$plan" --graph graph.json --least --family exact
ends 0 "^2$" "$plan" --graph graph.json --least
# Published graphs, where LRCNN_DATA names a folder that has them.
if [ -n "${LRCNN_DATA:-}" ] && [ -e "$LRCNN_DATA/graphs/unet.json" ]; then
  ends 0 "^5545689088$" "$plan" --graph "$LRCNN_DATA/graphs/unet.json" --family exact --least
  ends 0 "^overhead 34 of a forward pass of 231 " "$plan" --graph "$LRCNN_DATA/graphs/unet.json" --family exact --budget 6932111360
else
  echo "skipped: set LRCNN_DATA to a folder that has graphs/unet.json"
fi
[ "$failures" -eq 0 ] && echo "every graph was answered, every bad input refused"
exit "$((failures > 0))"
