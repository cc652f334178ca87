// Every law of shape/rows.hpp against the definition of a window, for all small windows and heights:
// kernel 1-7, stride 1-4, dilation 1-3, top and bottom padding 0-7 (windows may lie wholly in padding), height 1-14.
#include <lrcnn/shape/rows.hpp>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>
using namespace lrcnn;
namespace {
/// Counts laws that held and keeps the first that did not.
struct Laws {
  Index held = 0;
  std::string broken;
  template <class Show>
  void operator()(bool law, const char* name, Show show) {
    if (law) ++held;
    else if (broken.empty()) broken = std::string(name) + " with " + show();
  }
};
std::string show(const Axis& a, Index height) {
  return std::string(a.ceil ? "ceil " : "") + "kernel " + std::to_string(a.kernel) + " stride " + std::to_string(a.stride) + " dilation " +
         std::to_string(a.dilation) + " pads " + std::to_string(a.pad_begin) + "," + std::to_string(a.pad_end) + " height " + std::to_string(height);
}
std::string show(Range r) { return "[" + std::to_string(r.begin) + "," + std::to_string(r.end) + ")"; }
template <class F>
void each_axis(F f) {
  for (Index k = 1; k <= 7; ++k)
    for (Index s = 1; s <= 4; ++s)
      for (Index d = 1; d <= 3; ++d)
        for (Index p = 0; p <= 7; ++p)
          for (Index q = 0; q <= 7; ++q) f(Axis{k, s, p, q, d});
}
/// Likewise rounded up, with padding that is smaller than the window, as that of pools.
template <class F>
void each_rounded_axis(F f) {
  for (Index k = 1; k <= 5; ++k)
    for (Index s = 1; s <= 4; ++s)
      for (Index d = 1; d <= 2; ++d)
        for (Index p = 0; p < std::min<Index>(4, (k - 1) * d + 1); ++p)
          for (Index q = 0; q < std::min<Index>(4, (k - 1) * d + 1); ++q) f(Axis{k, s, p, q, d, 1, true});
}
/// The definition: output row o reads rows o*stride - pad + i*dilation. What lies between them counts as read, for a
/// slab holds it; rows outside the map are padding.
Index first_tap(const Axis& a, Index o) { return o * a.stride - a.pad_begin; }
Index last_tap(const Axis& a, Index o) { return first_tap(a, o) + (a.kernel - 1) * a.dilation; }
/// Number of windows that fit between the padded borders; rounded up, one more that begins in the map or before it, if rows are left for it.
Index windows(const Axis& a, Index height) {
  const Index end = height + a.pad_end;
  Index count = 0;
  while (last_tap(a, count) < end) ++count;
  return count + (a.ceil && last_tap(a, count - 1) + 1 < end && first_tap(a, count) < height);
}
/// Number of leading windows that end before row `known`.
Index computable(const Axis& a, Index known, Index height) {
  Index count = 0;
  while (count < windows(a, height) && (known >= height || last_tap(a, count) < known)) ++count;
  return count;
}
std::vector<Index> rows_between(Index begin, Index end, Index height) {
  std::vector<Index> rows;
  for (Index r = begin; r < end; ++r)
    if (r >= 0 && r < height) rows.push_back(r);
  return rows;
}
std::vector<Index> rows_of(Range r) { return rows_between(r.begin, r.end, r.end); }
}   // namespace
TEST_CASE("the number of output rows is the number of windows that fit") {
  Laws law;
  each_axis([&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) law(std::max<Index>(0, out_extent(a, h)) == windows(a, h), "out_extent", [&] { return show(a, h); });
  });
  CHECK(law.broken == "");
  CHECK(law.held == 7 * 4 * 3 * 64 * 14);
  CHECK(out_extent({.kernel = 5, .stride = 4}, 1) == 0);    // floor(-4 / 4) + 1
  CHECK(out_extent({.kernel = 7, .stride = 4}, 1) == -1);   // floor(-6 / 4) + 1: rounds toward minus infinity
}
TEST_CASE("rounded up, the number of output rows is PyTorch's ceil_mode: the last window begins in the map or before it") {
  Laws law;
  each_axis([&](Axis a) {
    a.ceil = true;
    for (Index h = 1; h <= 14; ++h) {
      const auto where = [&] { return show(a, h); };
      const Index room = h + a.pad_begin + a.pad_end - a.extent() + a.stride - 1;   // its division rounds toward minus infinity
      if (room < 0) {
        law(out_extent(a, h) < 1, "no window", where);
        continue;
      }
      Index count = room / a.stride + 1;
      if ((count - 1) * a.stride >= h + a.pad_begin) --count;
      law(out_extent(a, h) == count, "out_extent", where);
      if (2 * a.pad_begin > a.kernel || 2 * a.pad_end > a.kernel) continue;   // PyTorch has no such
      law(first_tap(a, count - 1) < h, "begins in the map or before it", where);
      law(first_tap(a, count) >= h || last_tap(a, count - 1) + 1 >= h + a.pad_end, "one more would not", where);
    }
  });
  each_rounded_axis([&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) law(std::max<Index>(0, out_extent(a, h)) == windows(a, h), "out_extent", [&] { return show(a, h); });
  });
  CHECK(law.broken == "");
  CHECK(law.held > 50000);
  const auto of = [](Index h, Index k, Index s, Index p) {
    return out_extent({.kernel = k, .stride = s, .pad_begin = p, .pad_end = p, .ceil = true}, h);
  };
  CHECK(of(111, 3, 2, 0) == 55);   // SqueezeNet's pools at 224
  CHECK(of(55, 3, 2, 0) == 27);
  CHECK(of(54, 3, 2, 0) == 27);
  CHECK(of(6, 3, 2, 0) == 3);
  CHECK(of(1, 2, 2, 0) == 1);   // maps that are smaller than the window
  CHECK(of(2, 3, 2, 0) == 1);
  CHECK(of(1, 3, 2, 0) == 0);   // the window reaches two rows too far, the stride is two
  CHECK(of(1, 7, 5, 1) == 1);
  CHECK(of(7, 2, 2, 1) == 4);   // rounded up it would be 5, whose window begins behind the map
}
TEST_CASE("axes of layers that make maps larger or fold them hold what each output row reads, and the frontier follows") {
  Laws law;
  const auto check = [&](const Axis& axis, Index h, Index outs, auto reads, Index slack) {
    const auto where = [&] { return show(axis, h) + " up " + std::to_string(axis.up); };
    for (Index o = 0; o < outs; ++o) {
      const Range rows = in_rows(axis, {o, o + 1}, h), wanted = reads(o);
      law(rows.contains(wanted), "reads lie within", where);
      if (slack >= 0 && !wanted.empty()) law(rows.size() <= wanted.size() + slack, "no more than that", where);
    }
    for (Index b = 0; b <= outs; ++b) {
      const Index known = known_for(axis, b, h);
      law(frontier(axis, known, h, outs) >= b, "frontier(known_for(b)) >= b", where);
      for (Index f = 0; f <= h; ++f)
        if (b > frontier(axis, f, h, outs)) law(known > f, "b > frontier(f) implies known_for(b) > f", where);
    }
  };
  for (Index h = 1; h <= 9; ++h) {
    for (Index k = 1; k <= 4; ++k)
      for (Index s = 1; s <= 4; ++s)
        for (Index d = 1; d <= 2; ++d)
          for (Index p = 0; p <= 3; ++p) {
            const Axis window{.kernel = k, .stride = s, .pad_begin = p, .pad_end = p / 2, .dilation = d};
            const Index outs = transposed_extent(window, h);
            if (outs < 1) continue;
            check(
                transposed_axis(window), h, outs,
                [&](Index o) {
                  Range rows{};
                  for (Index i = 0; i < h; ++i)
                    for (Index r = 0; r < k; ++r)
                      if (tap_position(window, i, r) == o) rows = hull(rows, {i, i + 1});
                  return rows;
                },
                d == 1 ? s : -1);
          }
    for (Index p = 0; p < h; ++p)
      for (Index q = 0; q < h; ++q) {
        const Axis window{.pad_begin = p, .pad_end = q};
        check(
            reflected_axis(window), h, h + p + q,
            [&](Index o) {
              const Index at = reflected_position(o, p, h);
              law(0 <= at && at < h && (at == o - p || at == p - o || at == 2 * (h - 1) - (o - p)), "reflected", [&] { return show(window, h); });
              return Range{at, at + 1};
            },
            -1);
      }
    for (Index outs = 1; outs <= 12; ++outs)
      check(
          adaptive_axis(outs, h), h, outs,
          [&](Index o) {
            const Range rows = adaptive_window(o, outs, h);
            for (Index i = 0; i < h; ++i)
              law(rows.contains({i, i + 1}) == adaptive_readers(i, outs, h).contains({o, o + 1}), "readers", [&] { return std::to_string(h); });
            return rows;
          },
          1);
  }
  CHECK(law.broken == "");
  CHECK(transposed_axis({.kernel = 2, .stride = 2}) == nearest_axis(2));   // no row twice
}
TEST_CASE("output rows read what their windows span, clipped at the true borders") {
  Laws law;
  const auto check = [&](const Axis& a) {
    for (Index h : {1, 2, 3, 5, 8, 14}) {
      const Index outs = windows(a, h);
      for (Index first = 0; first < outs; ++first)
        for (Index end = first + 1; end <= outs; ++end) {
          const Range in = in_rows(a, {first, end}, h);
          const auto where = [&] { return show(a, h) + " out " + show(Range{first, end}) + " in " + show(in); };
          law(rows_of(in) == rows_between(first_tap(a, first), last_tap(a, end - 1) + 1, h), "in_rows", where);
          law(in.begin <= in.end && Range{0, h}.contains(in), "in_rows lies in the map", where);
          if (in.empty()) continue;
          const RowPads pads = pad_rows(a, {first, end}, in);
          law(pads.top + in.size() + pads.bottom == (end - 1 - first) * a.stride + a.extent(), "pads and rows are the span", where);
          law(pads.top == std::max<Index>(0, -first_tap(a, first)), "padding above", where);
          law(pads.bottom == std::max<Index>(0, last_tap(a, end - 1) + 1 - h), "padding below", where);
          const RowPads more = pad_rows(a, {first, end}, {in.begin, in.end + 2});
          law(more.top == pads.top && more.bottom == std::max<Index>(0, pads.bottom - 2), "unread rows need no padding", where);
        }
      law(in_rows(a, {0, 0}, h).empty() && in_rows(a, {3, 3}, h).empty() && in_rows(a, {5, 2}, h).empty(), "in_rows(empty) = empty",
          [&] { return show(a, h); });
    }
  };
  each_axis(check), each_rounded_axis(check);
  CHECK(law.broken == "");
  CHECK(law.held > 1000000);
}
TEST_CASE("the frontier counts the leading windows that end within the known rows") {
  Laws law;
  const auto check = [&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) {
      if (windows(a, h) == 0) continue;
      for (Index f = 0; f <= h; ++f)
        law(frontier(a, f, h) == computable(a, f, h), "frontier", [&] { return show(a, h) + " known " + std::to_string(f); });
      law(frontier(a, h + 3, h) == windows(a, h), "all rows known", [&] { return show(a, h); });
    }
  };
  each_axis(check), each_rounded_axis(check);
  CHECK(law.broken == "");
  CHECK(law.held > 500000);
}
TEST_CASE("known_for and frontier are inverse to each other") {
  Laws law;
  const auto check = [&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) {
      const Index outs = windows(a, h);
      if (outs == 0) continue;
      for (Index b = 0; b <= outs; ++b) {
        const Index known = known_for(a, b, h);
        const auto where = [&] { return show(a, h) + " wanted " + std::to_string(b); };
        law(0 <= known && known <= h, "known_for lies in the map", where);
        law(frontier(a, known, h) >= b, "frontier(known_for(b)) >= b", where);
        law(known == 0 || frontier(a, known - 1, h) < b, "known_for(b) is the least", where);
        for (Index f = 0; f <= h; ++f) {
          if (b > frontier(a, f, h)) law(known > f, "b > frontier(f) implies known_for(b) > f", where);
          else law(known <= f, "b <= frontier(f) implies known_for(b) <= f", where);
        }
        if (b > 0)
          law(known == std::max(in_rows(a, {b - 1, b}, h).end, Index{0}) || in_rows(a, {b - 1, b}, h).empty(),
              "known_for(b) is the end of in_rows([b-1,b))", where);
      }
      law(known_for(a, 0, h) == 0 && known_for(a, -1, h) == 0, "nothing wanted, nothing needed", [&] { return show(a, h); });
    }
  };
  each_axis(check), each_rounded_axis(check);
  CHECK(law.broken == "");
  CHECK(law.held > 5000000);
}
TEST_CASE("the carry holds exactly the known rows that windows beyond the frontier read") {
  Laws law;
  const auto check = [&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) {
      const Index outs = windows(a, h);
      if (outs == 0) continue;
      for (Index f = 0; f <= h; ++f) {
        const Index next = frontier(a, f, h);
        const Range kept = carry(a, f, h);
        const auto where = [&] { return show(a, h) + " known " + std::to_string(f) + " carry " + show(kept); };
        law(kept.end == f && 0 <= kept.begin && kept.begin <= f, "the carry ends at the known rows", where);
        if (next < outs) law(rows_of(kept) == rows_between(first_tap(a, next), f, h), "carry", where);
        law(hull(kept, {f, h}).contains(in_rows(a, {next, outs}, h)), "the rest reads carry and new rows alone", where);
        for (Index g = f; g <= h; ++g) {
          const Range slab{next, frontier(a, g, h)};
          law(hull(kept, {f, g}).contains(in_rows(a, slab, h)), "a slab reads carry and its own rows alone", where);
          law(slab.end >= slab.begin, "the frontier never goes back", where);
        }
      }
    }
  };
  each_axis(check), each_rounded_axis(check);
  CHECK(law.broken == "");
  CHECK(law.held > 5000000);
}
TEST_CASE("a stride remainder leaves fewer rows unread than the stride, and a stride beyond the kernel leaves gaps") {
  Laws law;
  const auto check = [&](const Axis& a) {
    for (Index h = 1; h <= 14; ++h) {
      const Index outs = windows(a, h);
      if (outs == 0) continue;
      std::set<Index> read;
      for (Index o = 0; o < outs; ++o)
        for (Index r = std::max<Index>(0, first_tap(a, o)); r <= std::min(h - 1, last_tap(a, o)); ++r) read.insert(r);
      const auto where = [&] { return show(a, h); };
      const Index end = known_for(a, outs, h);
      law(read.empty() || *read.rbegin() < end, "rows from known_for(H_out) on are unread", where);
      law(h - end < a.stride, "fewer rows than the stride are unread at the bottom", where);
      law(a.extent() < a.stride || static_cast<Index>(read.size()) == end, "without gaps", where);
      for (Index o = 0; o + 1 < outs; ++o) {
        const Range now = in_rows(a, {o, o + 1}, h), next = in_rows(a, {o + 1, o + 2}, h);
        if (now.empty() || next.empty()) continue;
        law(next.begin - now.end <= std::max<Index>(0, a.stride - a.extent()), "a gap is stride - extent at most", where);
      }
    }
  };
  each_axis(check), each_rounded_axis(check);
  CHECK(law.broken == "");
}
TEST_CASE("slabs wholly in padding read nothing and can be computed at once") {
  const Axis above{.kernel = 2, .pad_begin = 4};
  CHECK(in_rows(above, {0, 3}, 5).empty());
  CHECK(in_rows(above, {0, 4}, 5) == Range{0, 1});
  CHECK(frontier(above, 0, 5) == 3);
  CHECK(known_for(above, 3, 5) == 0);
  const Axis below{.kernel = 2, .pad_end = 4};
  CHECK(out_extent(below, 5) == 8);
  CHECK(in_rows(below, {5, 8}, 5).empty());
  CHECK(frontier(below, 4, 5) == 3);
  CHECK(known_for(below, 8, 5) == 5);
  CHECK(pad_rows(below, {5, 8}, in_rows(below, {5, 8}, 5)) == RowPads{0, 4});
}
TEST_CASE("a window may be taller than the map, and than any slab of it") {
  const Axis tall{.kernel = 7, .pad_begin = 3, .pad_end = 3};
  CHECK(out_extent(tall, 1) == 1);
  CHECK(out_extent(tall, 3) == 3);
  for (Index o = 0; o < 3; ++o) CHECK(in_rows(tall, {o, o + 1}, 3) == Range{0, 3});
  CHECK(frontier(tall, 2, 3) == 0);   // one-row slabs: nothing is ready before the last row is
  CHECK(carry(tall, 2, 3) == Range{0, 2});
  CHECK(pad_rows(tall, {1, 2}, {0, 3}) == RowPads{2, 2});
}
TEST_CASE("the frontiers of the share example: one 3x3 convolution with padding 1 lags one row, a 2x2 pool halves") {
  const Axis conv{.kernel = 3, .pad_begin = 1, .pad_end = 1}, pool{.kernel = 2, .stride = 2};
  CHECK(frontier(conv, 42, 224) == 41);
  CHECK(carry(conv, 42, 224) == Range{40, 42});
  CHECK(frontier(conv, 224, 224) == 224);
  CHECK(frontier(pool, 41, 224) == 20);
  CHECK(carry(pool, 41, 224) == Range{40, 41});
  CHECK(carry(pool, 40, 224).empty());
  CHECK(frontier({.kernel = 1, .stride = 3}, 2, 9) == 1);   // stride beyond the kernel: rows 1 and 2 are skipped
  CHECK(carry({.kernel = 1, .stride = 3}, 2, 9).empty());
}
static_assert(in_rows(Axis{.kernel = 3, .pad_begin = 1, .pad_end = 1}, {0, 4}, 9) == Range{0, 5});
static_assert(known_for(Axis{.kernel = 3, .stride = 2}, 3, 20) == 7);
