#pragma once
// A plan as a page: one file without anything from elsewhere, for any browser.
#include "frontier_chart.hpp"
#include "memory_chart.hpp"
#include "slab_diagram.hpp"
#include <lrcnn/plan/section_table.hpp>
namespace page {
/// The numbers behind the drawings, as JSON: of every step its end in seconds, operation, layer, pass, section, slab and bytes by kind.
inline std::string numbers(const lrcnn::Plan& plan, const MemoryOverTime& memory) {
  const auto quoted = [](std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') out += '\\';
      if (code < 0x20 || c == '<') out += "\\u00" + std::string(1, "0123456789abcdef"[code >> 4]) + "0123456789abcdef"[code & 15];
      else out += c;
    }
    return out + "\"";
  };
  std::string text = "{\"policy\": " + quoted(lrcnn::to_string(plan.policy)) + ",\n\"arena_bytes\": " + std::to_string(plan.arena.bytes) +
                     ",\n\"live_bytes\": " + std::to_string(memory.peak()) + ",\n\"seconds\": " + lrcnn::number_text(memory.seconds()) +
                     ",\n\"kinds\": [";
  for (const Kind& kind : kinds) text += (&kind == &kinds[0] ? "" : ", ") + quoted(kind.name);
  text += "],\n\"layers\": [";
  for (lrcnn::Index l = 0; l < plan.table.size(); ++l) text += (l == 0 ? "" : ", ") + quoted(plan.table.node(l).layer.name.view());
  text += "],\n\"steps\": [\n";
  constexpr std::array<std::string_view, 3> passes{"forward", "forward again", "backward"};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const lrcnn::Step& s = plan.steps[i];
    text += (i == 0 ? "[" : ",\n[") + lrcnn::number_text(memory.ends[i]) + ", " + quoted(lrcnn::op_name(s.op)) + ", " + std::to_string(s.layer) +
            ", " + quoted(passes[static_cast<std::size_t>(s.pass)]) + ", " + std::to_string(lrcnn::item(plan.stages, s.stage).section + 1) + ", " +
            std::to_string(s.slab + 1);
    for (const Kind& kind : kinds) text += ", " + std::to_string(bytes_of(memory.live[i], kind));
    text += "]";
  }
  return text + "\n]}\n";
}
/// What a page of a plan shows beside the plan.
struct PageFacts {
  std::string network;
  std::string device{};       ///< the GPU that the plan is for; or empty
  std::string chosen_for{};   ///< "Fit<...>", where the policy was chosen; or empty
  const lrcnn::Frontier* frontier = nullptr;
  Point column{};
  std::vector<Point> ready{};
  const MemoryOverTime* of_column = nullptr;
};
inline constexpr std::string_view page_style =
    R"(:root { color-scheme: light dark; --back: #ffffff; --text: #222222; --rule: #d5d5d5; --soft: #f5f5f4; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e6e6e6; --rule: #3a3d44; --soft: #1f2228; } }
body { margin: 0 auto; padding: 1.2rem; max-width: 64rem; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; border-bottom: 1px solid var(--rule); padding-bottom: .2rem; }
.scroll { overflow-x: auto; } svg { width: 100%; min-width: 40rem; height: auto; display: block; }
.slabs svg { width: auto; min-width: 0; height: 272px; }
code { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow-wrap: anywhere; background: var(--soft); padding: .7rem; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top; white-space: nowrap; }
th { white-space: normal; } td code { white-space: normal; } td:nth-child(-n+2), th:nth-child(-n+2) { text-align: left; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .6rem; margin: .8rem 0; }
dl div { background: var(--soft); padding: .5rem .7rem; }
dt { font-size: .8rem; opacity: .75; } dd { margin: 0; font-size: 1.15rem; }
#tip { position: fixed; pointer-events: none; visibility: hidden; background: var(--soft); border: 1px solid var(--rule); padding: .4rem .6rem;
  font: 12px/1.4 ui-monospace, monospace; white-space: pre; max-width: 90vw; }
)";
/// Shows the step under the pointer.
inline constexpr std::string_view script = R"(const plan = JSON.parse(document.getElementById('numbers').textContent);
const chart = document.getElementById('memory'), tip = document.getElementById('tip');
const cursor = document.createElementNS('http://www.w3.org/2000/svg', 'line');
cursor.setAttribute('class', 'cursor'); chart.append(cursor);
const left = +chart.dataset.left, right = +chart.dataset.right, most = +chart.dataset.seconds;
const top_ = +chart.dataset.top, bottom = +chart.dataset.bottom;
const bytes = b => { let u = 0; while (b >= 1000 && u < 4) { b /= 1000; ++u; }
  return (u ? b.toFixed(1) : b) + ' ' + ['B', 'kB', 'MB', 'GB', 'TB'][u]; };
const show = event => {
  const box = chart.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * chart.viewBox.baseVal.width;
  const time = (x - left) / (right - left) * most;
  let low = 0, high = plan.steps.length - 1;
  while (low < high) { const middle = (low + high) >> 1; plan.steps[middle][0] < time ? low = middle + 1 : high = middle; }
  const s = plan.steps[low];
  if (!s || time < 0 || time > plan.seconds) return hide();
  const live = s.slice(6), sum = live.reduce((a, b) => a + b, 0);
  tip.textContent = `step ${low + 1} of ${plan.steps.length}, ${s[3]}\n` +
    `${s[1]}${s[2] < 0 ? '' : ' ' + plan.layers[s[2]]}\nsection ${s[4]}, slab ${s[5]}\n` +
    `${bytes(sum)} live\n` + live.map((b, k) => b ? `  ${bytes(b).padStart(9)}  ${plan.kinds[k]}` : '').filter(Boolean).join('\n');
  tip.style.visibility = cursor.style.visibility = 'visible';
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)) + 'px';
  for (const [name, value] of [['x1', x], ['x2', x], ['y1', top_], ['y2', bottom]]) cursor.setAttribute(name, value);
};
const hide = () => { tip.style.visibility = cursor.style.visibility = 'hidden'; };
chart.addEventListener('pointermove', show); chart.addEventListener('pointerdown', show); chart.addEventListener('pointerleave', hide);
)";
/// What there is to say of the diagrams of slabs, and of the sections that have none.
inline std::string words_on_slabs(const lrcnn::Plan& plan) {
  std::string whole;
  std::size_t count = 0;
  for (const lrcnn::Stage& stage : plan.stages) {
    if (stage.forward.slabs() > 1 || stage.backward.slabs() > 1) continue;
    whole += (count++ == 0 ? "" : ", ") + lrcnn::layers_text(plan.table, {stage.first, stage.last});
  }
  if (count == plan.stages.size()) return "No section is cut into slabs of rows.";
  return "For each tensor of a stage, from its input to its output, the rows that each slab has." +
         (count == 0 ? std::string() : " Not cut into slabs of rows: <code>" + escaped(whole) + "</code>.");
}
/// The page.
inline std::string plan_page(const lrcnn::Plan& plan, const lrcnn::Costs& costs, const PageFacts& facts) {
  const MemoryOverTime memory(plan, costs);
  const auto cell = [](std::string_view text) { return "<td>" + escaped(text) + "</td>"; };
  const auto fact = [](std::string_view name, std::string_view value) {
    return "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd></div>\n";
  };
  const std::string title = facts.network + " on " + lrcnn::to_string(plan.table.input) + (facts.device.empty() ? "" : ", " + facts.device);
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>" +
      escaped(title) + "</title>\n<style>\n" + std::string(page_style) + std::string(style) + "</style>\n</head>\n<body>\n<h1>" + escaped(title) +
      "</h1>\n<p>" + (facts.chosen_for.empty() ? "The plan of one step under" : "<code>" + escaped(facts.chosen_for) + "</code> chose") +
      "</p>\n<pre><code>" + escaped(lrcnn::to_string(plan.policy)) + "</code></pre>\n<dl>\n";
  out +=
      fact("peak (arena)", lrcnn::format_bytes(plan.arena.bytes)) + fact("no placement needs less than", lrcnn::format_bytes(plan.arena.lower_bound));
  out += fact("foretold time", time_text(memory.seconds()));
  if (facts.column.seconds > 0)
    out += fact("of the column's time", lrcnn::fixed_text(memory.seconds() / facts.column.seconds, 2)) +
           fact("of the column's bytes", lrcnn::fixed_text(static_cast<double>(plan.arena.bytes) / static_cast<double>(facts.column.bytes), 2));
  out += fact("layers, steps, buffers",
              std::to_string(plan.table.size()) + ", " + std::to_string(plan.steps.size()) + ", " + std::to_string(plan.buffers.size()));
  out += "</dl>\n<h2>Memory over one step</h2>\n";
  const Axes axes{.width = 960, .height = 400, .most_x = 0, .most_y = 0};
  const double drawn = std::max(memory.seconds(), facts.of_column == nullptr ? 0 : facts.of_column->seconds());
  std::string chart = memory_chart(plan, memory, facts.of_column, "the column, layer by layer").within_page("memory");
  chart.insert(chart.find('>'), " data-left=\"" + at(axes.left) + "\" data-right=\"" + at(axes.width - axes.right) + "\" data-top=\"" + at(axes.top) +
                                    "\" data-bottom=\"" + at(axes.height - 96) + "\" data-seconds=\"" + lrcnn::number_text(drawn) + "\"");
  out +=
      "<div class=\"scroll\">" + chart +
      "</div>\n<p>Over the time that is foretold; the strip below tells forward (blue), forward again (green) and backward (orange) passes. Point at "
      "the picture for the step, its slab and its bytes.</p>\n<h2>Sections</h2>\n<div class=\"scroll\"><table>\n<tr>";
  for (const std::string_view head : {"section", "policy", "slabs forward / backward", "kept", "peak while it runs", "time", "of the step"})
    out += "<th>" + std::string(head) + "</th>";
  out += "</tr>\n";
  for (const lrcnn::SectionLine& line : lrcnn::section_lines(plan, costs))
    out += "<tr>" + cell(lrcnn::layers_text(plan.table, line.layers)) + "<td><code>" + escaped(lrcnn::to_string(line.partition)) + "</code></td>" +
           cell(std::to_string(line.forward_slabs) + " / " + std::to_string(line.backward_slabs)) + cell(lrcnn::format_bytes(line.kept)) +
           cell(lrcnn::format_bytes(line.peak)) + cell(time_text(line.seconds)) + cell(lrcnn::fixed_text(100 * line.share, 1) + " %") + "</tr>\n";
  out += "</table></div>\n";
  out += "<h2>Slabs</h2>\n<p>" + words_on_slabs(plan) + "</p>\n";
  for (const lrcnn::Stage* const stage : stages_with_slabs(plan))
    out += "<div class=\"scroll slabs\">" + SlabDiagram(plan, *stage).drawn().within_page() + "</div>\n";
  if (facts.frontier != nullptr)
    out += "<h2>What bytes cost in time</h2>\n<div class=\"scroll\">" +
           frontier_chart(*facts.frontier, facts.column, facts.ready, {"this plan", plan.arena.bytes, memory.seconds()}).within_page() +
           "</div>\n<p>Blue: the fastest policy for each number of bytes. Green: policies that come with the library. Grey: the column. Red: this "
           "plan.</p>\n";
  return out + "<div id=\"tip\"></div>\n<script type=\"application/json\" id=\"numbers\">\n" + numbers(plan, memory) + "</script>\n<script>\n" +
         std::string(script) + "</script>\n</body>\n</html>\n";
}
}   // namespace page
