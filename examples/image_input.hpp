#pragma once
// Photographs of any format as what networks here read: which file, which level, which region, as a batch of one image.
#include <lrcnn/core/bytes.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/data/image_source.hpp>
#include <lrcnn/data/images.hpp>
#include <lrcnn/plan/plan.hpp>
#include <optional>
#include <string>
#include <string_view>
/// What the networks here are given: the mean and deviation that photographs have.
inline const lrcnn::Normalization photograph_normalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
/// Opens a colour photograph of any format. `level`: of a whole-slide image.
/// Errors:  DataError if the file cannot be opened, or has no colours
inline std::shared_ptr<const lrcnn::ImageFile> open_photograph(const std::string& path, std::optional<lrcnn::Index> level = {}) {
  using namespace lrcnn;
  const std::shared_ptr<const ImageFile> file = level ? open_slide(path, {.level = *level}) : open_image(path);
  if (const Index channels = file->info().channels; channels != 3 && channels != 4)
    throw DataError(error_text("image '" + path + "' has " + std::to_string(channels) + (channels == 1 ? " channel (grey)" : " channels"),
                               "the network reads three: red, green and blue", "give a colour photograph"));
  return file;
}
/// "ROWSxCOLUMNS+TOP+LEFT": a region that lies within an image of these extents.
/// Errors:  Error if the text is anything else. `what` names the image in messages: "a photograph"
inline lrcnn::ImageRegion parse_region(const std::string& text, lrcnn::Index height, lrcnn::Index width, const std::string& what) {
  using namespace lrcnn;
  std::array<Index, 4> n{};   // rows, columns, top, left
  std::string_view rest = text;
  bool good = true;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto end = rest.find(i == 0 ? 'x' : '+');
    const auto number = parse_number<Index>(rest.substr(0, end));
    good = good && number && (i == 3) == (end == rest.npos);
    n[i] = number.value_or(0);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  }
  good = good && n[0] > 0 && n[1] > 0 && n[2] >= 0 && n[3] >= 0;
  if (!good || n[0] > height - n[2] || n[1] > width - n[3])
    throw Error(error_text("no region '" + text + "' of " + what + " of " + std::to_string(height) + "x" + std::to_string(width),
                           "a region lies within it and is written as ROWSxCOLUMNS+TOP+LEFT", "write it as in 64x96+0+32"));
  return {{n[2], n[2] + n[0]}, {n[3], n[3] + n[1]}};
}
/// A region of a photograph as a batch of one image, three channels, read tile by tile when a step asks for rows.
inline lrcnn::ImageSource<float> photograph_source(const lrcnn::CachedImage& image, const lrcnn::ImageRegion& region) {
  return lrcnn::ImageSource<float>(image, {.region = region, .channels = {0, 1, 2}, .normalization = photograph_normalization});
}
/// A cache with room for the tiles that a slab of a plan touches, wherever it begins, and for two more rows of tiles, which are decoded ahead.
inline std::shared_ptr<lrcnn::TileCache> cache_for(const lrcnn::Plan& plan, const lrcnn::ImageInfo& info, const lrcnn::ImageRegion& region) {
  using namespace lrcnn;
  Index rows = 1;
  for (const Step& step : plan.steps)
    if (step.op == Op::load) rows = std::max(rows, step.y.rows.size());
  const Index down = std::min(ceil_div(rows, info.tile_height) + 3, info.tile_rows());
  const Index across = ceil_div(region.columns.end, info.tile_width) - region.columns.begin / info.tile_width;
  return std::make_shared<TileCache>(TileCacheOptions{.bytes = down * across * info.tile_bytes()});
}
/// What a cache did, in a sentence.
inline std::string cache_text(const lrcnn::TileCacheReport& report) {
  return std::to_string(report.decoded_tiles) + " tiles decoded, " + std::to_string(report.decoded_ahead) + " of them ahead; at most " +
         lrcnn::format_bytes(report.most_bytes) + " of them in memory; " + lrcnn::fixed_text(report.seconds_waited, 1) + " s of waiting for them";
}
