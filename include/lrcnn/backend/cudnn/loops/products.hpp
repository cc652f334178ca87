#pragma once
// Sums over dy, and over dy times what is made of x, of channels: the backward sums of norms, and gradients of what channels are multiplied by.
#include <lrcnn/backend/cudnn/loops/norm_numbers.hpp>
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
struct NoRelu {
  static constexpr int phases = 0;
  struct Shared {};
  struct Channel {
    template <class T>
    LRCNN_HOST_DEVICE bool passes(T) const {
      return true;
    }
  };
  LRCNN_HOST_DEVICE Channel channel(const Shared&, int) const { return {}; }
};
/// What passes the ReLU behind the norm counts: dy where the norm's output is positive.
template <class T>
struct ReluBehind {
  using A = master_t<T>;
  static constexpr int phases = 1;
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
template <class T, class Means, class Then, class Relu = NoRelu>
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
        packs(takes_packs<V>(down.data, down.n > 1 ? down.stride_n : 0, down.c) &&
              takes_packs<V>(view.data, view.n > 1 ? view.stride_n : 0, view.c)) {}
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
        load_all<packed>([&](int i) { return x + this->before(place, some.at(i), x_stride_n); }, place.count, value);
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
