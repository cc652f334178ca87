#pragma once
// The data of programs that classify images: from a folder of IDX or CIFAR-10 files, or drawn.
#include <lrcnn/data/detect.hpp>
#include <lrcnn/data/shapes.hpp>
#include <algorithm>
#include <string>
struct TrainAndTest {
  lrcnn::Dataset train, test;
};
/// Both parts of the set in `folder`, of which the first `images` are trained on if that is not 0; or, without a folder, shapes as
/// `drawn` says, and a sixth as many to test with.
/// Errors:  DataError if there is no such folder or set, or its parts have images of different sizes
inline TrainAndTest load_or_draw(const std::string& folder, lrcnn::Index images, lrcnn::ShapesOptions drawn) {
  using namespace lrcnn;
  TrainAndTest data;
  if (folder.empty()) {
    data.train = make_shapes(drawn);
    drawn.count = std::max<Index>(drawn.count / 6, 10), drawn.split = Split::test;
    data.test = make_shapes(drawn);
    return data;
  }
  data.train = load_dataset(folder, Split::train);
  data.test = load_dataset(folder, Split::test);
  const Shape &train = data.train.shape, &test = data.test.shape;
  if (train.c != test.c || train.h != test.h || train.w != test.w)
    throw DataError(error_text("folder '" + folder + "' has training images " + to_string(train) + " and test images " + to_string(test),
                               "both parts have images of one size", "use files that belong together"));
  if (images > 0) data.train = subset(data.train, {0, std::min(images, data.train.size())});
  return data;
}
