#pragma once
// Sums over dy, and over dy times what is made of x, of channels: the backward sums of norms, and gradients of what channels are multiplied by.
#include <lrcnn/backend/cudnn/loops/norm_numbers.hpp>
#include <lrcnn/backend/cudnn/loops/relu_sign.hpp>
#include <lrcnn/backend/cudnn/together.hpp>
namespace lrcnn::loops::detail {
/// x - mean.
struct Centred {
  template <class A>
  LRCNN_HOST_DEVICE A operator()(A x, A mean) const {
    return x - mean;
  }
};
/// Means of channels, and what makes of x at a position what dy is multiplied by.
template <class T>
struct ChannelMeans {
  ChannelNorm<T> norm;
  LRCNN_HOST_DEVICE double mean(Index set, Index c) const { return norm.mean(set, c); }
  LRCNN_HOST_DEVICE Centred pixel(Index) const { return {}; }
};
struct NoMeans {
  LRCNN_HOST_DEVICE double mean(Index, Index) const { return 0; }
  LRCNN_HOST_DEVICE Centred pixel(Index) const { return {}; }
};
/// What a pixel is normalised with.
struct PixelNorm {
  double mean, inverse;
  template <class A>
  LRCNN_HOST_DEVICE A operator()(A x, A) const {
    return static_cast<A>((static_cast<double>(x) - mean) * inverse);
  }
};
template <class T>
struct PixelNorms {
  const PixelNorm* pixels;
  LRCNN_HOST_DEVICE double mean(Index, Index) const { return 0; }
  LRCNN_HOST_DEVICE PixelNorm pixel(Index position) const { return pixels[position]; }
};
/// All of dy counts.
struct AllPasses {
  static constexpr int phases = 0;
  static constexpr bool changes_gradient = false;   ///< pass() does
  struct Shared {};
  struct Channel {
    template <class T>
    LRCNN_HOST_DEVICE bool passes(T) const {
      return true;
    }
  };
  LRCNN_HOST_DEVICE Channel channel(const Shared&, int) const { return {}; }
};
/// What passes the ReLU behind the join that reads the norm's output counts: of dy, or of dy and what is added to it, rounded. It is the gradient of
/// the join's other input, too.
template <class T>
struct ReluBehindJoin : AllPasses {
  static constexpr bool changes_gradient = true;
  ReluSign<T> relu;
  Line<const T> added;
  Line<T> to;
  explicit ReluBehindJoin(const Operands<T>& o) : ReluBehindJoin(*cudnn::PointwiseStep<T>::of(*o.along), o.other, o.dx) {}
  template <int n, bool packed, class Loop, class Some>
  LRCNN_HOST_DEVICE void pass(const Loop& loop, const typename Loop::Place& place, const Some& some, Pack<T, lanes<T>> (&down)[n]) const {
    constexpr int few = n > 1 ? 2 : 1;   // what is stored is a border that loads do not cross: more at once take too many registers
    static_assert(n % few == 0);
    for (int first = 0; first < n; first += few) {
      const SameTilePlaces<few> places(
          loop, place, [&](int i) { return some.at(first + i); }, to.stride_n);
      Pack<T, lanes<T>>(&part)[few] = *reinterpret_cast<Pack<T, lanes<T>>(*)[few]>(down + first);
      unsigned passing[few];
      relu.template find<packed>(places, place.count, passing);
      if (added.data != nullptr) {
        using A = master_t<T>;
        Pack<T, lanes<T>> more[few];
        load_all<packed>([&](int i) { return places.in(added, i); }, place.count, more);
        for (int i = 0; i < few; ++i)
          for (int v = 0; v < lanes<T>; ++v)
            part[i].element[v] = static_cast<T>(static_cast<A>(part[i].element[v]) + static_cast<A>(more[i].element[v]));
      }
      relu.keep(passing, part);
      for (int i = 0; i < few; ++i)
        if (some.has(first + i)) store_pack<packed>(places.in(to, i), place.count, part[i]);
    }
  }

 private:
  ReluBehindJoin(const cudnn::PointwiseStep<T>& step, const View<const T>& more, const View<T>& other)
      : relu{step.saved, step.values}, added(more), to(other) {
    assert(position_packs<lanes<T>>(step.values) && position_packs<lanes<T>>(more) && position_packs<lanes<T>>(other));
  }
};
/// What passes the ReLU behind the norm counts: dy where the norm's output is positive.
template <class T>
struct ReluBehind {
  using A = master_t<T>;
  static constexpr int phases = 1;
  static constexpr bool changes_gradient = false;
  ChannelNorm<T> norm;
  struct Shared {
    A scale[block_threads], shift[block_threads];   ///< of the block's channels
  };
  struct Channel {
    A scale, shift;
    LRCNN_HOST_DEVICE bool passes(T x) const { return ChannelNorm<T>::normalised(static_cast<A>(x), scale, shift) > A(0); }
  };
  LRCNN_HOST_DEVICE void find(Shared& shared, int i, Index c) const { norm.scale_and_shift(0, c, shared.scale[i], shared.shift[i]); }
  LRCNN_HOST_DEVICE Channel channel(const Shared& shared, int i) const { return {shared.scale[i], shared.shift[i]}; }
};
/// Sums over dy, and over dy times what is made of x, of channels.
template <class T, class Means, class Then, class Relu = AllPasses>
struct ProductsLoop : PartLoop<T, false, Then> {
  using Base = PartLoop<T, false, Then>;
  using Base::V;
  using typename Base::Elements, typename Base::Place;
  static constexpr int phases = Base::phases + Relu::phases;
  struct Shared {
    typename Base::Shared parts;
    typename Relu::Shared relu;
  };
  const T *dy, *x;
  Index stride_n, x_stride_n;
  Means means;
  Relu relu;
  bool packs;
  ProductsLoop(const View<const T>& down, const View<const T>& view, const Tiles& t, const Parts& parts_of, const Means& m, const Then& result,
               std::uint32_t* counted, const Relu& behind = {})
      : Base(down, t, parts_of, result, counted),
        dy(down.data),
        x(view.data),
        stride_n(down.stride_n),
        x_stride_n(view.stride_n),
        means(m),
        relu(behind),
        packs(position_packs<V>(down) && position_packs<V>(view)) {}
  template <int k>
  LRCNN_HOST_DEVICE void phase(Index block, int thread, Shared& shared) const {
    const Place place = this->place(block, thread);
    constexpr int own = k - Relu::phases;
    if constexpr (own < 0) {
      const Index c = this->place(block, 0).channel + thread;
      if (thread < this->tiles.width * V && c < this->channels) relu.find(shared.relu, thread, c);
    } else if constexpr (own == 0) {
      if (packs && place.count == V) add_up<sizeof(T) == 2 ? 4 : 2, true>(place, thread, shared);
      else add_up<1, false>(place, thread, shared);
    } else if constexpr (own == 1) {
      this->add_rows(thread, shared.parts);
    } else if constexpr (own == 2) {
      this->put_part(block, thread, shared.parts);
    } else {
      this->template end_phase<own - Base::own_phases>(block, thread, shared.parts.turn);
    }
  }

 private:
  template <int n, bool packed>
  LRCNN_HOST_DEVICE void add_up(const Place& place, int thread, Shared& shared) const {
    using Few = few_t<T>;
    Few mean[V] = {};
    typename Relu::Channel channel[V];
    double sum[V] = {}, product[V] = {};
    const int own = (thread - place.row * this->tiles.width) * V;
    for (int v = 0; v < V; ++v) {
      if (v < place.count) mean[v] = static_cast<Few>(means.mean(place.set, place.channel + v));
      channel[v] = relu.channel(shared.relu, v < place.count ? own + v : own);
    }
    if (place.count > 0)
      this->template each<n>(place, [&](const auto& some) {
        Elements down[n], value[n];
        load_all<packed>([&](int i) { return dy + this->before(place, some.at(i), stride_n); }, place.count, down);
        constexpr bool passes_first = Relu::changes_gradient && n > 2;   // before x takes registers, where those of dy are enough on their way
        if constexpr (passes_first) relu.template pass<n, packed>(*this, place, some, down);
        load_all<packed>([&](int i) { return x + this->before(place, some.at(i), x_stride_n); }, place.count, value);
        if constexpr (Relu::changes_gradient && !passes_first) relu.template pass<n, packed>(*this, place, some, down);
        decltype(means.pixel(Index{})) norm[n];
        for (int i = 0; i < n; ++i) norm[i] = means.pixel(some.at(i));
        for (int v = 0; v < V; ++v) {
          Few few = 0, few_products = 0;
          for (int i = 0; i < n; ++i) {
            const Few g = some.has(i) && channel[v].passes(value[i].element[v]) ? static_cast<Few>(down[i].element[v]) : Few(0);
            few += g, few_products += g * norm[i](static_cast<Few>(value[i].element[v]), mean[v]);
          }
          sum[v] += static_cast<double>(few), product[v] += static_cast<double>(few_products);
        }
      });
    this->keep(shared.parts, thread, sum, product);
  }
};
}   // namespace lrcnn::loops::detail
