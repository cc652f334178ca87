#pragma once
// What the tensors of a network look like from one section: which it reads, which pass by, and how long they live.
//
// A section is layers [begin, end). The sections below it have run before it in the forward pass and run after it in the backward pass. A tensor
// in full height that a section reads was written below it. Whether it lives on until the backward pass depends on who reads it there: the
// section itself, one above it, or one below it, among them the one that wrote it.
#include <lrcnn/plan/profile.hpp>
namespace lrcnn {
namespace detail {
/// Layers that read each tensor of a table, and the bytes of each in full height. Pre: table and target outlive the object.
class TensorReaders {
 public:
  TensorReaders(const Table& table, const Target& target, const PlanOptions& options, Index images)
      : table_(table),
        target_(target),
        images_(images),
        readers_(static_cast<std::size_t>(table.tensors())),
        plain_(static_cast<std::size_t>(table.tensors())) {
    for (Index n = 0; n < table.size(); ++n)
      for (const Index g : {table.node(n).input, table.node(n).other}) {
        if (g < 0) continue;
        item(readers_, g).push_back(n);
        if (!waits(table.node(n), options.training)) item(plain_, g).push_back(n);
      }
    for (Index g = 0; g < table.tensors(); ++g) bytes_.push_back(bytes_with(g, 0));
  }
  Index bytes(Index g) const { return item(bytes_, g); }
  /// The same with so many rows more.
  Index bytes_with(Index g, Index rows) const {
    const Shape& s = table_.shape(g);
    return round_up(target_.bytes(g == 0 || g == table_.size() ? s.n : images_, s.c, s.h + rows, s.w), target_.alignment);
  }
  /// Whether a layer from `layer` on reads tensor g, whether one that gives it a gradient does, and whether one of [begin, end) does.
  bool read_from(Index g, Index layer) const { return any(item(readers_, g), layer, table_.size()); }
  bool given_from(Index g, Index layer) const { return any(item(plain_, g), layer, table_.size()); }
  bool read_within(Index g, Index begin, Index end) const { return any(item(readers_, g), begin, end); }
  bool given_within(Index g, Index begin, Index end) const { return any(item(plain_, g), begin, end); }
  /// Tensors, other than the network's input, that layers before `layer` write and others from there on read.
  std::vector<Index> across(Index layer) const {
    std::vector<Index> tensors;
    for (Index g = 1; g <= layer && g < table_.size(); ++g)
      if (read_from(g, layer)) tensors.push_back(g);
    return tensors;
  }

 private:
  const Table& table_;
  const Target& target_;
  const Index images_;
  std::vector<std::vector<Index>> readers_, plain_;   ///< by tensor; rising
  std::vector<Index> bytes_;
  static bool any(const std::vector<Index>& nodes, Index begin, Index end) {
    const auto at = std::lower_bound(nodes.begin(), nodes.end(), begin);
    return at != nodes.end() && *at < end;
  }
};
}   // namespace detail
/// Where a section lies in the network, and what that means for its buffers.
class SectionBorder {
 public:
  /// `images`: how many the step has at once. Pre: the table and the readers outlive the object.
  SectionBorder(const Table& table, const detail::TensorReaders& readers, const Target& target, const PlanOptions& options, Index images, Index begin,
                Index end)
      : begin_(begin), end_(end), table_(table), readers_(readers), training_(options.training) {
    for (const Index g : readers.across(begin)) (readers.read_within(g, begin, end) ? inputs_ : passing_).push_back(g);
    for (const Index g : passing_) passing_bytes_ += readers.bytes(g);
    for (Index g = options.input_gradient ? 0 : 1; training_ && g <= begin; ++g)
      if (readers.given_from(g, end) && !readers.given_within(g, begin, end)) passing_gradients_ += readers.bytes(g);
    for (Index n = end; training_ && n < table.size(); ++n) {   // of norms above whose input lies below
      const Node& node = table.node(n);
      if (!detail::waits(node, true) || node.input > begin) continue;
      const auto aligned = [&](Index bytes) { return round_up(bytes, target.alignment); };
      passing_gradients_ += aligned(target.bytes(images, node.out.c, node.out.h, node.out.w)) + aligned(sums_bytes(node.layer, node.in.c, images));
    }
  }
  Index begin() const { return begin_; }
  Index end() const { return end_; }
  bool is_last() const { return end_ == table_.size(); }
  /// Tensors from below that it reads, and those that it does not read but a section above does. The network's input is none.
  const std::vector<Index>& inputs() const { return inputs_; }
  const std::vector<Index>& passing() const { return passing_; }
  Index passing_bytes() const { return passing_bytes_; }
  /// Bytes of gradients that live through its backward pass without being touched.
  Index passing_gradients() const { return passing_gradients_; }
  bool read_above(Index g) const { return readers_.read_from(g, end_); }
  /// Whether the tensor in front of the section, its last input, is one that no other section above reads, so that it may be offloaded; not if a
  /// norm of the section reads it, whose gradient the section below makes.
  bool may_offload() const {
    if (!training_ || inputs_.empty() || inputs_.back() != begin_ || read_above(begin_) || rules_of(table_.node(begin_ - 1).layer).reduces)
      return false;
    for (Index n = begin_; n < end_; ++n)
      if (table_.node(n).input == begin_ && detail::waits(table_.node(n), true)) return false;
    return true;
  }
  /// By how many bytes a tensor in full height is larger with so many rows more.
  Index bytes_of_more_rows(Index g, Index rows) const { return readers_.bytes_with(g, rows) - readers_.bytes(g); }
  /// When a buffer of the section lives, in its own times: as its profile says, or longer because of other sections. Not for tensors that
  /// it reads from below.
  Range stretched(const SectionBuffer& b, const SectionProfile& profile) const {
    const Index backward = profile.forward_end + 1;
    Range times{b.first, b.last};
    const auto from_backward_start = [&] { times.begin = std::min(times.begin, backward); };
    const auto to_forward_end = [&] { times.end = std::max(times.end, backward); };
    for (const SharedKey& key : b.keys) {
      const Index g = key.number, norm = key.number - 1;   // of a tensor, or of the layer that writes it
      switch (key.kind) {
        case SharedBuffer::value:
          if (readers_.read_from(g, end_)) to_forward_end();
          break;
        case SharedBuffer::gradient:
          if (readers_.given_from(g, end_)) from_backward_start();
          if (g <= begin_) times.end = profile.end;
          break;
        case SharedBuffer::norm_gradient:
        case SharedBuffer::sums:
          if (norm >= end_) from_backward_start();
          if (norm >= begin_ && norm < end_ && detail::waits(table_.node(norm), training_) && table_.node(norm).input <= begin_)
            times.end = profile.end;
          break;
        case SharedBuffer::statistics:
          if (norm >= end_) to_forward_end();
          break;
        case SharedBuffer::value_again:
        case SharedBuffer::value_between:
        case SharedBuffer::workspace: break;
      }
    }
    if (b.to_end) times.end = profile.end;
    return times;
  }
  /// Whether a buffer is a tensor from below, or statistics that are counted where they are made.
  bool is_from_below(const SectionBuffer& b) const {
    for (const SharedKey& key : b.keys) {
      if (key.kind == SharedBuffer::value && key.number <= begin_ && key.number > 0) return true;
      if (key.kind == SharedBuffer::statistics && table_.node(key.number - 1).input <= begin_) return true;
    }
    return false;
  }
  /// Whether two sections, neither at the network's input nor at its output, have the same layers and stand in the same way to others, so
  /// that what is true of one is true of the other. Pre: they are of one network.
  bool is_twin(const SectionBorder& other) const {
    const Index by = other.begin_ - begin_;
    if (end_ + by != other.end_ || begin_ == 0 || other.begin_ == 0 || is_last() || other.is_last() || inputs_.size() != other.inputs_.size() ||
        may_offload() != other.may_offload())
      return false;
    const auto same = [&](Index g, Index h) {
      return table_.shape(g) == table_.shape(h) && read_above(g) == other.read_above(h) &&
             readers_.given_from(g, end_) == readers_.given_from(h, other.end_) && norms_above(g) == other.norms_above(h);
    };
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (!same(inputs_[i], other.inputs_[i])) return false;
    for (Index l = begin_; l < end_; ++l) {
      const Node &a = table_.node(l), &b = table_.node(l + by);
      if (a.layer.kind != b.layer.kind || a.in != b.in || a.in2 != b.in2 || place(a.input) != other.place(b.input) ||
          place(a.other) != other.place(b.other) || !same(l + 1, l + 1 + by))
        return false;
      Layer layer = b.layer;
      layer.name = a.layer.name, layer.input = a.layer.input, layer.other = a.layer.other;   // places count, not these
      if (a.layer != layer) return false;
    }
    return true;
  }

 private:
  Index begin_, end_;
  const Table& table_;
  const detail::TensorReaders& readers_;
  bool training_;
  std::vector<Index> inputs_{}, passing_{};
  Index passing_bytes_ = 0, passing_gradients_ = 0;
  /// Where a tensor that one of its layers reads is: one of the section's, one of its inputs, or neither.
  std::pair<Index, Index> place(Index g) const {
    if (g > begin_) return {1, g - begin_};
    const auto at = std::find(inputs_.begin(), inputs_.end(), g);
    return at == inputs_.end() ? std::pair<Index, Index>{0, g < 0} : std::pair<Index, Index>{-1, at - inputs_.begin()};
  }
  /// Norms that wait above the section and read a tensor.
  Index norms_above(Index g) const {
    Index count = 0;
    for (Index n = end_; n < table_.size(); ++n) count += table_.node(n).input == g && detail::waits(table_.node(n), training_);
    return count;
  }
};
}   // namespace lrcnn
