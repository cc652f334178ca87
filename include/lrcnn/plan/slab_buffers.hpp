#pragma once
// Buffers of slabs: which there are for a stage, and where the pieces of the slab at hand lie in them.
//
// A buffer is known by stage, tensor and what it is for (Use). Its size is that of the largest slab, or the sum over
// slabs where each has a piece of its own, so that it is the same whichever slab asks first.
#include <lrcnn/plan/sink.hpp>
#include <lrcnn/plan/stage_walk.hpp>
#include <array>
#include <vector>
namespace lrcnn {
constexpr Ref with_rows(Ref ref, Range rows) {
  ref.rows = rows;
  return ref;
}
class SlabBuffers {
 protected:
  /// What a buffer of one tensor, or of one layer, is for. _f: in the forward pass, _a: in a repeated forward pass; _b: in
  /// the backward pass. What is used in one of them alone lives no longer than that.
  // clang-format off
  enum Use : std::size_t {
    slab_f, slab_a, slab_b, own_f, own_a, own_b, need_f, need_a, need_b, kept, saved_b, saved_kept, rolling_rows, rolling_again, state_rows,
    dslab, dmore, dneed, down, dcarry, packed_f, packed_a, packed_r, packed_b, scratch, workspace_f, workspace_a, workspace_b, fetched,
    use_count
  };
  // clang-format on
  /// Of three uses, that of the pass at hand: a first forward pass, a repeated one, or a backward pass.
  static constexpr Use of_pass(const StageWalk& walk, Use first, Use again, Use backward) {
    return walk.again() ? again : walk.forward() ? first : backward;
  }
  const Target& target_;
  Sink& sink_;
  constexpr SlabBuffers(const Target& target, const std::vector<Stage>& stages, Sink& sink) : target_(target), sink_(sink) {
    const auto add = [&](const Stage& stage) { uses_.push_back(std::vector<Index>(use_count * static_cast<std::size_t>(stage.tensors() + 1), -1)); };
    for (const Stage& stage : stages) add(stage);
    if (!std::any_of(stages.begin(), stages.end(), [](const Stage& stage) { return stage.supplies || stage.makes_input; })) return;
    for_above_ = uses_.size();
    for (const Stage& stage : stages) add(stage);
  }
  constexpr Index aligned(Index bytes) const { return round_up(bytes, target_.alignment); }
  constexpr Index piece_bytes(const Shape& s, Index images, Index rows) const { return aligned(target_.bytes(images, s.c, rows, s.w)); }
  static constexpr Ref with_tensor(const StageWalk& walk, Ref ref, Index t) {
    ref.tensor = walk.stage->tensor(t);
    return ref;
  }
  constexpr Index& use(const StageWalk& walk, Use which, Index t) {
    // A pass for the sections above has buffers of its own, but for what it leaves to the stage's backward pass.
    const bool apart = walk.for_above() && which != kept && which != saved_kept && which != state_rows;
    return uses_[static_cast<std::size_t>(walk.number) + (apart ? for_above_ : 0)]
                [which * static_cast<std::size_t>(walk.tensors() + 1) + static_cast<std::size_t>(t)];
  }
  // Templates stand before what uses them: constant expressions of clang ask for that.
  template <class Bytes>
  constexpr Index declared(const StageWalk& walk, Use which, Role role, Index t, Bytes bytes, Index copies = 1) {
    Index& id = use(walk, which, t);
    if (id < 0) id = sink_.declare(role, walk.number, t < walk.tensors() ? walk.stage->tensor(t) : -1, bytes(), copies);
    return id;
  }
  /// A buffer with a piece for every slab. `size` gives a piece's bytes for a number of images and a slab.
  template <class Size>
  constexpr Ref piece(const StageWalk& walk, Use which, Role role, Index t, Range hold, Index slabs, Index n, Size size) {
    const Index images = std::min(walk.stage->partition.images, walk.group.size()), count = ceil_div(walk.group.size(), images);
    const Index last = walk.group.size() - (count - 1) * images;   // images of the last slab of images
    const auto all = [&](Index of_images) {
      Index bytes = 0;
      for (Index k = 0; k < slabs; ++k) bytes += size(of_images, k);
      return bytes;
    };
    const Index id = declared(walk, which, role, t, [&] { return (count - 1) * all(images) + all(last); });
    Index offset = 0;
    if (sink_.every_turn) {
      const auto begins = [&](Index of_images) -> const std::vector<Index>& {
        return piece_begins(id, of_images, of_images == images, slabs, [&](Index k) { return size(of_images, k); });
      };
      if (walk.image_slab > 0) offset = walk.image_slab * begins(images).back();
      offset += item(begins(walk.image_slab + 1 < count ? images : last), n);
    }
    return {id, offset, walk.stage->tensor(t), walk.images, hold, walk.images, hold};
  }

  /// A buffer that is used anew in every slab: room for the largest.
  constexpr Ref local(const StageWalk& walk, Use which, Role role, Index t, Range SlabRows::*held) {
    const Range hold = walk.at(t).*held;
    const bool input = t < walk.inputs() && walk.comes_from_outside(t) && role == Role::slab && held == &SlabRows::hold;
    const Index id = (input ? walk.input_copy() : walk.stream()) +
                     declared(
                         walk, which, role, t, [&] { return piece_bytes(walk.shape(t), walk.stage->partition.images, walk.rows->most(t, held)); },
                         input ? walk.input_copies() : walk.copies());
    return {id, 0, walk.stage->tensor(t), walk.images, hold, walk.images, hold};
  }
  /// A buffer of the rows that layer l reads, without others.
  constexpr Ref needed_rows(const StageWalk& walk, Use which, Role role, Index l) {
    const Range rows = walk.need(l);
    const Index t = walk.in(l);
    Index& id = use(walk, which, l);
    if (id < 0)
      id = sink_.declare(role, walk.number, walk.stage->tensor(t), piece_bytes(walk.shape(t), walk.stage->partition.images, walk.most_needed(l)),
                         walk.copies());
    return {id + walk.stream(), 0, walk.stage->tensor(t), walk.images, rows, walk.images, rows};
  }
  /// A buffer of the rows of tensor t that are carried into slab n.
  constexpr Ref carried(const StageWalk& walk, Use which, Role role, Index t, Index n) {
    const Index id =
        declared(walk, which, role, t, [&] { return piece_bytes(walk.shape(t), walk.stage->partition.images, walk.rows->most_carried(t)); });
    const Range rows = walk.rows->carried(n, t);
    return {id, 0, walk.stage->tensor(t), walk.images, rows, walk.images, rows};
  }

 private:
  /// Where the slabs' pieces begin in a buffer, for so many images, and where the last one ends.
  struct PieceBegins {
    Index images = 0;
    std::vector<Index> of_slab{};
  };
  /// They are added up once, since each slab asks for several: otherwise plans of thousands of slabs would take minutes.
  template <class Size>
  constexpr const std::vector<Index>& piece_begins(Index id, Index images, bool most, Index slabs, Size size) {
    if (begins_.size() <= static_cast<std::size_t>(id)) begins_.resize(static_cast<std::size_t>(id) + 1);
    PieceBegins& known = item(begins_, id)[most ? 0 : 1];
    if (known.images != images || known.of_slab.size() != static_cast<std::size_t>(slabs) + 1) {
      known = {images, {0}};
      known.of_slab.reserve(static_cast<std::size_t>(slabs) + 1);
      for (Index k = 0; k < slabs; ++k) known.of_slab.push_back(known.of_slab.back() + size(k));
    }
    return known.of_slab;
  }
  std::vector<std::array<PieceBegins, 2>> begins_{};   ///< by buffer: for slabs of all their images, and for the last one, which may have fewer
  std::vector<std::vector<Index>> uses_{};             ///< of each stage: buffers by use and tensor; then those of passes for the sections above
  std::size_t for_above_ = 0;                          ///< where these begin
};
}   // namespace lrcnn
