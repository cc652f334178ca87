// data/idx.hpp, data/cifar.hpp, data/detect.hpp: right files, and every wrong one.
#include <lrcnn/data/detect.hpp>
#include "support.hpp"
#include <doctest/doctest.h>
using namespace lrcnn;
using namespace lrcnn::test;
namespace {
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
/// A folder with both IDX files of a part, written before a test damages one.
struct IdxFolder : TemporaryFolder {
  explicit IdxFolder(const Bytes& images = idx_images(3, 4, 5), const Bytes& labels = idx_labels({7, 0, 9})) {
    write("train-images-idx3-ubyte", images);
    write("train-labels-idx1-ubyte", labels);
  }
  std::string error(const IdxOptions& options = {}) const {
    return error_of([&] { load_idx(path(), Split::train, options); });
  }
  std::string images() const { return "file '" + path().string() + "/train-images-idx3-ubyte'"; }
  std::string labels() const { return "file '" + path().string() + "/train-labels-idx1-ubyte'"; }
};
}   // namespace
TEST_CASE("idx: images and labels, plain and gzip, both parts") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(3, 4, 5), labels = idx_labels({7, 0, 9});
  folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels-idx1-ubyte.gz", gzip(labels));
  folder.write("t10k-images-idx3-ubyte.gz", gzip(idx_images(1, 2, 2)));
  folder.write("t10k-labels-idx1-ubyte", idx_labels({1}));
  const Dataset data = load_idx(folder.path(), Split::train);
  CHECK(data.shape == Shape{3, 1, 4, 5});
  CHECK(data.images == Bytes(images.begin() + 16, images.end()));
  CHECK(data.labels == std::vector<std::int32_t>{7, 0, 9});
  CHECK(data.classes == 10);
  CHECK(data.class_names.empty());
  CHECK(data.class_name(7) == "7");
  CHECK(data.description == "IDX files in '" + folder.path().string() + "', training");
  CHECK(load_idx(folder.path(), Split::test).shape == Shape{1, 1, 2, 2});
  CHECK(load_dataset(folder.path(), Split::train) == data);
  folder.write("classes.txt", bytes_of("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n"));
  CHECK(load_idx(folder.path(), Split::train).classes == 11);
  CHECK(load_idx(folder.path(), Split::train).class_name(10) == "k");
}
TEST_CASE("idx: a missing file") {
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  folder.write("train-images-idx3-ubyte", idx_images(3, 4, 5));
  CHECK(error_of([&] { load_idx(folder.path(), Split::train); }) ==
        "lrcnn: folder '" + where +
            "' has no file 'train-labels-idx1-ubyte' or 'train-labels-idx1-ubyte.gz'; every "
            "file of a part of a data set is needed; check the folder, or fetch the file");
  CHECK(contains(error_of([&] { load_dataset(folder.path(), Split::test); }), "has no file 't10k-images-idx3-ubyte'"));
}
TEST_CASE("idx: wrong magic, exchanged files") {
  const IdxFolder other(idx_images(3, 4, 5, 1234));
  CHECK(other.error() == "lrcnn: " + other.images() +
                             " begins with the number 1234; an IDX file of images begins "
                             "with 2051; check that it is an IDX file");
  const IdxFolder exchanged(idx_labels({7, 0, 9, 1, 1, 1, 1, 1}), idx_images(3, 4, 5));
  CHECK(exchanged.error() == "lrcnn: " + exchanged.labels() +
                                 " begins with the number 2051; an IDX file of labels "
                                 "begins with 2049; check that images and labels are not exchanged");
}
TEST_CASE("idx: cut and oversized, at every length") {
  const Bytes images = idx_images(3, 4, 5), labels = idx_labels({7, 0, 9});
  for (std::size_t size = 0; size < images.size(); ++size) {
    const std::string text = error_of([&] { parse_idx_images(cut(images, size), "x"); });
    CHECK(contains(text, "lrcnn: x is cut at byte " + std::to_string(size) + "; "));
    CHECK(contains(
        text, size < 16 ? "; the header of an IDX file of images takes 16 bytes; " : "; its header says 3 images of 4x5, which end at byte 76; "));
  }
  for (std::size_t size = 0; size < labels.size(); ++size)
    CHECK(contains(error_of([&] { parse_idx_labels(cut(labels, size), "x"); }), "lrcnn: x is cut at byte " + std::to_string(size) + "; "));
  CHECK(error_of([&] { parse_idx_images(join(images, {1}), "x"); }) ==
        "lrcnn: x goes on to byte 77; its header says 3 images of 4x5, which end at byte 76; check that it is the "
        "right file, or fetch it again");
  CHECK(contains(error_of([&] {
                   parse_idx_labels(join(labels, {1, 1}), "x");
                 }),
                 "lrcnn: x goes on to byte 13; its header says 3 labels, which end at byte 11; "));
  const Bytes huge = cut(idx_images(0, 0, 0), 4);
  Bytes header = huge;
  for (int i = 0; i < 3; ++i) big_endian(header, 0xffffffffu);
  CHECK(contains(error_of([&] { parse_idx_images(header, "x"); }), "lrcnn: x is cut at byte 16; "));
}
TEST_CASE("idx: gzip cut in the middle") {
  const TemporaryFolder folder;
  const Bytes packed = gzip(idx_images(30, 10, 10));
  folder.write("train-images-idx3-ubyte.gz", cut(packed, packed.size() / 2));
  folder.write("train-labels-idx1-ubyte", idx_labels(Bytes(30)));
  CHECK(contains(error_of([&] { load_idx(folder.path(), Split::train); }),
                 "train-images-idx3-ubyte.gz' is cut at byte " + std::to_string(packed.size() / 2) + " of "));
}
TEST_CASE("idx: counts that disagree, no images, no pixels") {
  const IdxFolder fewer(idx_images(3, 4, 5), idx_labels({1, 2}));
  CHECK(fewer.error() == "lrcnn: " + fewer.images() + " has 3 images and " + fewer.labels() +
                             " has 2 labels; each "
                             "image has one label; fetch both files again from the same place");
  const IdxFolder none(idx_images(0, 4, 5));
  CHECK(none.error() == "lrcnn: " + none.images() +
                            " says at byte 4 that it has 0 images of 4x5; a data set has at "
                            "least one image of one pixel; fetch it again");
  CHECK(contains(IdxFolder(idx_images(3, 0, 5)).error(), "has 3 images of 0x5; "));
  CHECK(contains(IdxFolder(idx_images(3, 4, 5), idx_labels({})).error(), "says at byte 4 that it has 0 labels; "));
}
TEST_CASE("idx: labels outside the classes, and a file above the limit") {
  const IdxFolder folder(idx_images(3, 4, 5), idx_labels({1, 2, 10}));
  CHECK(folder.error() == "lrcnn: " + folder.labels() +
                              " has label 10 at byte 10; labels of 10 classes are 0 to 9; "
                              "check the file, or raise the number of classes");
  CHECK(folder.error({.classes = 11}) == "no error");
  CHECK(contains(folder.error({.classes = 2}), "has label 2 at byte 9; labels of 2 classes are 0 to 1; "));
  CHECK(contains(folder.error({.classes = 11, .limit_bytes = 20}), folder.images() + " is larger than 20 bytes; "));
}
TEST_CASE("cifar: one file, several files, plain and gzip, class names") {
  const TemporaryFolder folder;
  const Bytes first = cifar({3, 9}), second = cifar({0});
  folder.write("data_batch_1.bin", first);
  folder.write("data_batch_2.bin.gz", gzip(second));
  folder.write("test_batch.bin", second);
  Dataset data = load_cifar(folder.path(), Split::train);
  CHECK(data.shape == Shape{3, 3, 32, 32});
  CHECK(data.labels == std::vector<std::int32_t>{3, 9, 0});
  CHECK(Bytes(data.image(1).begin(), data.image(1).end()) == Bytes(first.begin() + 3074, first.end()));
  CHECK(data.class_name(9) == "truck");
  CHECK(data.description == "CIFAR-10 training");
  CHECK(load_dataset(folder.path(), Split::train) == data);
  CHECK(load_dataset(folder.path(), Split::test).shape.n == 1);
  folder.write("train.bin.gz", gzip(second));   // one file goes before several
  folder.write("batches.meta.txt", bytes_of("q\nr\ns\nt\nu\nv\nw\nx\ny\nz\n\n"));
  data = load_cifar(folder.path(), Split::train);
  CHECK(data.shape.n == 1);
  CHECK(data.class_name(9) == "z");
}
TEST_CASE("cifar: cut, oversized, empty, foreign labels") {
  const TemporaryFolder folder;
  const auto error = [&](const Bytes& bytes) {
    folder.write("test.bin", bytes);
    return error_of([&] { load_cifar(folder.path(), Split::test); });
  };
  const std::string file = "lrcnn: file '" + (folder / "test.bin").string() + "'";
  CHECK(error(cut(cifar({1, 2}), 6145)) == file +
                                               " ends at byte 6145, 3072 bytes into record 1; CIFAR-10 records of 3073 bytes, counted from 0, follow "
                                               "each other without gaps; check that it is a CIFAR-10 binary file, or fetch it again");
  CHECK(contains(error(join(cifar({1, 2}), {0})), file + " ends at byte 6147, 1 bytes into record 2; "));
  CHECK(error({}) == file + " is empty; a CIFAR-10 file has at least one record of 3073 bytes; fetch it again");
  CHECK(error(cifar({1, 10})) == file +
                                     " has label 10 at byte 3073; labels of 10 classes are 0 to 9; check the "
                                     "file, or raise the number of classes");
  const Bytes packed = gzip(cifar({1, 2}));
  CHECK(contains(error(cut(packed, packed.size() - 4)), file + " is cut at byte "));
  folder.write("test.bin", cifar({1, 2}));
  CHECK(contains(error_of([&] { load_cifar(folder.path(), Split::test, 6145); }), file + " is larger than 6145 bytes; "));
  folder.write("batches.meta.txt", bytes_of("a\nb\n"));
  CHECK(contains(error_of([&] { load_cifar(folder.path(), Split::test); }),
                 "batches.meta.txt' has 2 lines; CIFAR-10 has 10 classes, one name a line; correct the file or "
                 "remove it"));
}
TEST_CASE("cifar: an append that fails leaves what was there") {
  Dataset data;
  data.classes = 10;
  append_cifar(data, cifar({4}), "a");
  const Dataset before = data;
  CHECK(contains(error_of([&] { append_cifar(data, cifar({5, 77}), "b"); }), "lrcnn: b has label 77 at byte 3073; "));
  CHECK(data == before);
}
TEST_CASE("cifar: a missing file, a gap") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { load_cifar(folder.path(), Split::test); }) == "lrcnn: folder '" + folder.path().string() +
                                                                         "' has no test images of CIFAR-10; they are in 'test.bin' or "
                                                                         "'test_batch.bin', plain or with .gz; check the folder, or fetch the file");
  CHECK(contains(error_of([&] { load_cifar(folder.path(), Split::train); }),
                 "; they are in 'train.bin' or 'data_batch_1.bin' and following, plain or with .gz; "));
  folder.write("data_batch_1.bin", cifar({1}));
  folder.write("data_batch_3.bin", cifar({1}));
  CHECK(contains(error_of([&] { load_cifar(folder.path(), Split::train); }), "has no file 'data_batch_2.bin' or 'data_batch_2.bin.gz'; "));
}
TEST_CASE("detect: a folder without a known data set says what was looked for") {
  const TemporaryFolder folder;
  const std::string where = folder.path().string();
  CHECK(error_of([&] { load_dataset(folder.path(), Split::train); }) ==
        "lrcnn: folder '" + where +
            "' has no data set that lrcnn knows; looked for 'train-images-idx3-ubyte', "
            "'train-labels-idx1-ubyte' and the same with t10k (IDX: MNIST, Fashion-MNIST), for 'train.bin', 'test.bin', "
            "'data_batch_1.bin' to 'data_batch_5.bin' and 'test_batch.bin' (CIFAR-10), each plain or with .gz; a folder of pictures for "
            "each class is another kind, which load_image_folder() reads; name the folder that holds the files themselves");
  CHECK(error_of([&] { load_dataset(folder / "no", Split::train); }) ==
        "lrcnn: folder '" + where + "/no' does not exist; a data set is a folder of files; check the path");
  folder.write("file", {});
  CHECK(contains(error_of([&] { load_dataset(folder / "file", Split::train); }), "/file' is not a folder; "));
}
