#pragma once
// Drawings as text. Colours are classes, so that a page or a figure says what they are, in light and in dark.
#include <lrcnn/core/text.hpp>
#include <string>
#include <string_view>
namespace page {
/// "&lt;" and so on: text between tags, or in an attribute.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}
/// A coordinate: at most two digits behind the point.
inline std::string at(double value) {
  std::string text = lrcnn::fixed_text(value, 2);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}
/// A drawing of so many units; what it has is added piece by piece.
class Drawing {
 public:
  /// `title`: what it shows, in a sentence.
  Drawing(double width, double height, std::string_view title) : width_(width), height_(height), title_(title) {}
  double width() const { return width_; }
  double height() const { return height_; }
  void rect(double x, double y, double w, double h, std::string_view kind, std::string_view hover = "") {
    body_ += "<rect x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" + at(w) + "\" height=\"" + at(h) + "\" class=\"" + std::string(kind) + "\"";
    body_ += hover.empty() ? "/>\n" : "><title>" + escaped(hover) + "</title></rect>\n";
  }
  void line(double x1, double y1, double x2, double y2, std::string_view kind) {
    body_ += "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + "\" class=\"" + std::string(kind) + "\"/>\n";
  }
  void circle(double x, double y, double r, std::string_view kind, std::string_view hover = "") {
    body_ += "<circle cx=\"" + at(x) + "\" cy=\"" + at(y) + "\" r=\"" + at(r) + "\" class=\"" + std::string(kind) + "\"><title>" + escaped(hover) +
             "</title></circle>\n";
  }
  void path(std::string_view d, std::string_view kind) { body_ += "<path d=\"" + std::string(d) + "\" class=\"" + std::string(kind) + "\"/>\n"; }
  /// `anchor`: start, middle or end.
  void text(double x, double y, std::string_view words, std::string_view anchor = "start", std::string_view kind = "words") {
    body_ += "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + std::string(anchor) + "\" class=\"" + std::string(kind) + "\">" +
             escaped(words) + "</text>\n";
  }
  /// Another drawing, with its upper left corner there.
  void add(const Drawing& other, double x, double y) {
    body_ += "<g transform=\"translate(" + at(x) + " " + at(y) + ")\">\n<title>" + escaped(other.title_) + "</title>\n" + other.body_ + "</g>\n";
  }
  /// As a part of a page, whose style it takes. `id`: for the page's script.
  std::string within_page(std::string_view id = "") const { return open(id.empty() ? "" : " id=\"" + std::string(id) + "\"") + body_ + "</svg>\n"; }
  /// As a file of its own.
  std::string alone(std::string_view style) const {
    return open(" width=\"" + at(width_) + "\" height=\"" + at(height_) + "\"") + "<style>\n" + std::string(style) + "</style>\n" + "<rect width=\"" +
           at(width_) + "\" height=\"" + at(height_) + "\" class=\"paper\"/>\n" + body_ + "</svg>\n";
  }

 private:
  double width_, height_;
  std::string title_, body_{};
  std::string open(const std::string& more) const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + at(width_) + " " + at(height_) + "\" role=\"img\"" + more + ">\n<title>" +
           escaped(title_) + "</title>\n";
  }
};
/// The classes' colours, for light paper and for dark.
inline constexpr std::string_view style = R"(svg { font: 12px "DejaVu Sans", Verdana, sans-serif;
  --paper: #ffffff; --ink: #222222; --faint: #e3e3e3; --middle: #777777; --value: #3b6fb6; --gradient: #d1772b; --slab: #8fbbe8;
  --dslab: #f3c08a; --kept: #4a9b6e; --carry: #9c6cc0; --packed: #9a9a9a; --workspace: #d3cbb8; --statistics: #c44e7a; }
@media (prefers-color-scheme: dark) { svg { --paper: #16181c; --ink: #e6e6e6; --faint: #33363c; --middle: #9a9a9a; --value: #5b8fd6;
  --gradient: #e08b40; --slab: #3f6b9c; --dslab: #9c6a35; --kept: #5fb083; --carry: #b48ad6; --packed: #777777; --workspace: #55503f;
  --statistics: #d86b94; } }
.paper { fill: var(--paper); } .words { fill: var(--ink); }
.small { fill: var(--middle); font-size: 11px; } .head { fill: var(--ink); font-weight: bold; }
.grid { stroke: var(--faint); } .axis { stroke: var(--middle); }
.outline { fill: none; stroke: var(--middle); stroke-width: 1.5; stroke-dasharray: 4 3; }
.value { fill: var(--value); } .gradient { fill: var(--gradient); } .slab { fill: var(--slab); } .dslab { fill: var(--dslab); }
.kept { fill: var(--kept); } .carry { fill: var(--carry); } .packed { fill: var(--packed); } .workspace { fill: var(--workspace); }
.statistics { fill: var(--statistics); }
.even { fill: var(--value); } .odd { fill: var(--gradient); } .even, .odd { stroke: var(--paper); stroke-width: 0.5; }
.twice { fill: var(--ink); } .handed { fill: var(--paper); stroke: var(--carry); stroke-width: 2; } .rows { stroke: var(--paper); stroke-width: 1.2; }
.map { fill: var(--faint); } .curve { fill: none; stroke: var(--value); stroke-width: 2; } .point { fill: var(--value); }
.chosen { fill: var(--statistics); stroke: var(--paper); stroke-width: 1.5; } .column { fill: var(--middle); } .ready { fill: var(--kept); }
.forward { fill: var(--value); opacity: 0.75; } .recompute { fill: var(--kept); opacity: 0.75; } .backward { fill: var(--gradient); opacity: 0.75; }
.cursor { stroke: var(--ink); stroke-width: 1; visibility: hidden; }
)";
}   // namespace page
