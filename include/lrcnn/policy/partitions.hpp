#pragma once
// Partitions as types: how one section is cut, and what becomes of its norms and of its input. Each stands within another, which says the rest.
#include <lrcnn/policy/spec.hpp>
namespace lrcnn {
namespace detail {
/// Partitions as another one, but for what the name says.
constexpr Partition by_images(Partition p, Index images) {
  p.images = images;
  return p;
}
constexpr Partition keeping(Partition p) {
  p.recompute = Recompute::none;
  return p;
}
constexpr Partition with_passes(Partition p, NormPasses passes, bool both_ways) {
  p.passes = passes;
  p.forward_passes = both_ways;
  return p;
}
constexpr Partition with_input(Partition p, SectionInput input, Index maker_slabs = 0) {
  p.input = input;
  p.maker_slabs = maker_slabs;
  return p;
}
/// Pre: `again` is one of the other two counts.
constexpr Partition in_slabs(Cut cut, Index forward, Index backward, Index again) {
  return {.cut = cut, .forward = forward, .backward = backward, .again_as_backward = again != forward};
}
}   // namespace detail
/// No cuts: the stage runs layer by layer.
struct Column {
  static constexpr Partition partition{};
};
/// N independent slabs, F in the forward pass and B in the backward pass; A, which is F or B, where the forward pass is run again before the section
/// goes backward. Pre: F, B >= 1.
template <Index F, Index B = F, Index A = F>
struct Overlap {
  static_assert(F >= 1 && B >= 1, "lrcnn: Overlap<N> needs at least one slab; counts are positive; use Overlap<1> or Column");
  static_assert(A == F || A == B,
                "lrcnn: Overlap<F, B, A> has another A than F and B; a forward pass that is run again has as many slabs as the first "
                "one, or as the backward pass; use Overlap<F, B, B>");
  static constexpr Partition partition = detail::in_slabs(Cut::overlap, F, B, A);
};
/// N slabs that share rows; F, B and A as in Overlap.
template <Index F, Index B = F, Index A = F>
struct Share {
  static_assert(F >= 1 && B >= 1, "lrcnn: Share<N> needs at least one slab; counts are positive; use Share<1> or Column");
  static_assert(A == F || A == B,
                "lrcnn: Share<F, B, A> has another A than F and B; a forward pass that is run again has as many slabs as the first "
                "one, or as the backward pass; use Share<F, B, B>");
  static constexpr Partition partition = detail::in_slabs(Cut::share, F, B, A);
};
/// Partition P with each slab cut into n images as well.
template <Index n, class P = Column>
struct ByImages {
  static_assert(n >= 1, "lrcnn: ByImages<n> needs at least one image; counts are positive; use ByImages<1>");
  static constexpr Partition partition = detail::by_images(P::partition, n);
};
/// Partition P in a section that keeps what its backward pass needs, where the policy recomputes in others: Section<P, KeepAll>. Of use in
/// the deeper stages, whose tensors are small and whose convolutions are not.
template <class P = Column>
struct Keep {
  static constexpr Partition partition = detail::keeping(P::partition);
};
/// Partition P in a section whose norms' backward sums come from extra passes of slabs, one for each norm above another, top down. Neither the
/// norms' inputs nor their gradients exist in full height then. Each pass makes the slab again from the section's input; with RecomputeCheap
/// the first keeps the norms' inputs for the others. Of use below the first pooling, in little arithmetic. Slabs must not share rows.
template <class P = Column>
struct ExtraPasses {
  static_assert(P::partition.cut != Cut::share,
                "lrcnn: ExtraPasses<Share<N>> hands on rows that only its forward pass has; slabs of extra "
                "passes make all their rows themselves; use ExtraPasses<Overlap<N>>");
  static constexpr Partition partition = detail::with_passes(P::partition, NormPasses::all, false);
};
/// ExtraPasses<P> whose forward pass goes through the section slab by slab too, once for the statistics of each norm that lies above
/// another and once for what the section writes (not for a loss that is local to rows, which the backward pass has): nothing within
/// it exists in full height at any time.
template <class P = Column>
struct ExtraPassesBothWays {
  static constexpr Partition partition = detail::with_passes(ExtraPasses<P>::partition, NormPasses::all, true);
};
/// ExtraPasses<P> through the section's last norms alone: of the stages that norms divide the section into, it covers as many of the last as one
/// extra pass is enough for, so none of the norms within lies above another. The stages below go forward again and backward as P says. In a
/// block whose last convolution makes the widest map, neither this map nor its gradient is in full height then, and little is computed more
/// than once again.
template <class P = Column>
struct OneExtraPass {
  static constexpr Partition partition = detail::with_passes(ExtraPasses<P>::partition, NormPasses::one, false);
};
/// OneExtraPass<P> whose forward pass goes through these last stages slab by slab, too: once for the statistics of their norms, and once for what the
/// section writes.
template <class P = Column>
struct OneExtraPassBothWays {
  static constexpr Partition partition = detail::with_passes(ExtraPasses<P>::partition, NormPasses::one, true);
};
/// Partition P in a section whose input is not kept: once the backward pass comes to the section, or to the topmost of several that follow each other
/// so, the sections below it, down to the nearest one whose input is kept, go forward once more. Their outputs then live until they have
/// gone backward themselves. So segments lie within a segment: fewer bytes are kept between the passes, for one more forward pass of
/// these sections. The section below recomputes all (RecomputeAll, or ExtraPasses) and makes a map.
template <class P = Column>
struct RecomputeInput {
  static constexpr Partition partition = detail::with_input(P::partition, SectionInput::recompute);
};
/// Partition P in a section whose input is not kept either, and is made again for this section alone: right before it goes backward, one pass goes
/// from the nearest section below whose input is kept through all layers up to it, in N slabs, or as P says. No other input of the sections between
/// is in full height then, so this takes fewer bytes than RecomputeInput; several such sections that follow each other take more forward
/// passes: the one below them all goes forward once for each. All these sections make maps.
template <class P = Column, Index N = 0>
struct RecomputeInputAlone {
  static_assert(N >= 0,
                "lrcnn: RecomputeInputAlone<P, N> has a negative N; counts of slabs are positive; use RecomputeInputAlone<P, 1>, or leave N out");
  static constexpr Partition partition = detail::with_input(P::partition, SectionInput::recompute_alone, N);
};
/// Partition P in a section whose input lies in a larger memory between the passes: a file on a disk where the backend is the host's, the host's
/// memory where it is a device's. The input is copied there when the section below is done, and is gone from the arena when the section has gone
/// forward. What reads it after that fetches the rows of a slab (all of them where P is Column). It computes nothing twice; each row goes out once,
/// and comes back once for each time that it is read. Not offloaded are tensors that another section further up reads, that the stage which makes
/// them reads in its own backward pass, or that are made again anyway. With Prefetch, a device fetches rows while it works on others.
template <class P = Column>
struct OffloadInput {
  static constexpr Partition partition = detail::with_input(P::partition, SectionInput::offload);
};
}   // namespace lrcnn
