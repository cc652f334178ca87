// data/image_folder.hpp, data/class_folders.hpp, data/byte_image.hpp: folders of pictures as data sets, and folders that are none.
#include <lrcnn/data/image_folder.hpp>
#include <lrcnn/data/jpeg.hpp>
#include <lrcnn/data/png.hpp>
#include <lrcnn/data/tiff.hpp>
#include "support/error_of.hpp"
#include "support/photo_files.hpp"
#include "tiff_files.hpp"
#include <doctest/doctest.h>
#include <fstream>
#include <set>
using namespace lrcnn;
using namespace lrcnn::test;
using lrcnn::testing::error_of;
namespace {
using Pixels = std::vector<std::uint8_t>;
constexpr std::array formats{jpeg_format, png_format, tiff_format};
/// A picture of one colour.
Pixels colour(Index pixels, const Pixels& of) {
  Pixels all;
  for (Index i = 0; i < pixels; ++i) all.insert(all.end(), of.begin(), of.end());
  return all;
}
/// Classes red, green and blue, as many pictures in each, in all formats and some sizes.
void write_colours(const std::filesystem::path& folder, int count) {
  const std::array<std::pair<const char*, Pixels>, 3> classes{{{"red", {220, 10, 20}}, {"green", {30, 200, 10}}, {"blue", {5, 25, 210}}}};
  const std::array<const char*, 3> endings{".jpg", ".png", ".tif"};
  for (const auto& [name, rgb] : classes)
    for (int i = 0; i < count; ++i) {
      const Index h = 20 + 7 * i, w = 50 - 3 * i;
      write_photo(folder / name / ("picture" + std::to_string(i) + endings[static_cast<std::size_t>(i) % 3]), h, w, 3, colour(h * w, rgb));
    }
}
void touch(const std::filesystem::path& path, const std::string& text = "") {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}
Dataset load(const std::filesystem::path& folder, Split split = Split::train, ImageFolderOptions options = {.height = 16, .width = 12}) {
  return load_image_folder(folder, split, formats, options);
}
std::string text_of(const std::filesystem::path& folder, Split split = Split::train, ImageFolderOptions options = {.height = 16, .width = 12}) {
  return error_of<DataError>([&] { load(folder, split, options); });
}
}   // namespace
TEST_CASE("image folder: classes sorted, pictures of all formats, both parts together all of them, whatever the threads") {
  const TestFolder folder;
  write_colours(folder / "set", 6);
  touch(folder / "set" / "red" / "notes.txt", "no picture");
  touch(folder / "set" / "red" / ".hidden.jpg", "no picture");
  touch(folder / "set" / ".cache" / "x.jpg", "no picture");
  touch(folder / "set" / "README.md", "no picture");
  const auto train = load(folder / "set"), test = load(folder / "set", Split::test);
  check(train), check(test);
  CHECK(train.class_names == std::vector<std::string>{"blue", "green", "red"});
  CHECK(test.class_names == train.class_names);
  CHECK(train.shape == Shape{15, 3, 16, 12});
  CHECK(test.shape == Shape{3, 3, 16, 12});   // a sixth of each class
  CHECK(std::set<std::int32_t>(test.labels.begin(), test.labels.end()).size() == 3);
  CHECK(train.description == "'" + (folder / "set").string() + "', training, classes blue, green, red");
  const std::array<Pixels, 3> rgb{{{5, 25, 210}, {30, 200, 10}, {220, 10, 20}}};
  for (const Dataset* part : {&train, &test})
    for (Index i = 0; i < part->size(); ++i)
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t p = 0; p < 16 * 12; ++p)
          REQUIRE(std::abs(part->image(i)[c * 16 * 12 + p] - item(rgb, item(part->labels, i))[c]) <= 3);   // JPEG
  for (const int threads : {1, 2, 5}) CHECK(load(folder / "set", Split::train, {.height = 16, .width = 12, .threads = threads}) == train);
  // Another seed splits otherwise; the two parts are all pictures, once, for each.
  std::set<std::string> splits;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::string tests;
    std::set<std::filesystem::path> all;
    for (const Split split : {Split::train, Split::test})
      for (const ClassFile& file : find_class_files(folder / "set", split, {.seed = seed}).files) {
        CHECK(all.insert(file.path).second);
        if (split == Split::test) tests += file.path.string() + " ";
      }
    CHECK(all.size() == 18);
    splits.insert(tests);
  }
  CHECK(splits.size() > 1);
  // Some of them, drawn.
  const auto some = find_class_files(folder / "set", Split::train, {.most_images = 4}).files;
  CHECK(some.size() == 4);
  CHECK(std::is_sorted(some.begin(), some.end(), [](const ClassFile& a, const ClassFile& b) { return a.path < b.path; }));
  CHECK(has_class_folders(folder / "set"));
  CHECK(!has_class_folders(folder / "set" / "red"));
  CHECK(!has_class_folders(folder / "nowhere"));
}
TEST_CASE("image folder: parts in folders of their own") {
  for (const char* tests : {"test", "val", "validation"}) {
    const TestFolder folder;
    write_colours(folder / "train", 2);
    write_colours(folder / tests, 1);
    std::filesystem::remove_all(folder / tests / "blue");
    CHECK(load(folder / "").size() == 6);
    const auto part = load(folder / "", Split::test);
    CHECK(part.labels == std::vector<std::int32_t>{1, 2});   // of the classes that are trained
    CHECK(part.classes == 3);
    CHECK(part.description == "'" + (folder / tests).string() + "', test, classes blue, green, red");
    write_colours(folder / tests, 1);
    std::filesystem::rename(folder / tests / "blue", folder / tests / "violet");
    CHECK(text_of(folder / "", Split::test) == "lrcnn: folder '" + (folder / tests).string() + "' has the class 'violet', which '" +
                                                   (folder / "train").string() +
                                                   "' has not; what is tested has been trained; move the folder, or give it the class's name");
  }
}
TEST_CASE("image folder: a description names the first ten classes and counts the others") {
  const TestFolder folder;
  const auto described = [&](int classes) {
    for (int i = 0; i < classes; ++i) touch(folder / ("c" + std::to_string(100 + i)) / "0.png", "damaged");
    write_photo(folder / "c100" / "1.png", 4, 4, 3, Pixels(48, 1));
    return load(folder / "", Split::train, {.height = 4, .width = 4, .split = {.test_share = 0.1}, .skipped = [](const std::string&) {}}).description;
  };
  CHECK(described(10).find("training, classes c100, c101, c102, c103, c104, c105, c106, c107, c108, c109, without ") != std::string::npos);
  CHECK(described(12).find("training, classes c100, c101, c102, c103, c104, c105, c106, c107, c108, c109 and 2 more, without ") != std::string::npos);
}
TEST_CASE("image folder: names of parts, of which the second may lack classes") {
  for (const auto& names : {std::pair{"train", "valid"}, {"Train", "Test"}, {"training", "testing"}, {"train", "VAL"}}) {
    const char *train = names.first, *tests = names.second;
    INFO(tests);
    const TestFolder folder;
    for (const char* of : {"a", "b", "c"}) write_photo(folder / train / of / "1.png", 4, 4, 3, Pixels(48, 1));
    write_photo(folder / tests / "b" / "2.png", 4, 4, 3, Pixels(48, 2));
    CHECK(find_class_files(folder / "", Split::train, {}).class_names == std::vector<std::string>{"a", "b", "c"});
    const auto of = [&](const char* path, std::int32_t label) { return ClassFile{folder / tests / path, label}; };
    CHECK(find_class_files(folder / "", Split::test, {}).files == std::vector<ClassFile>{of("b/2.png", 1)});
    touch(folder / tests / "c" / "notes.txt");   // no picture of it
    CHECK(find_class_files(folder / "", Split::test, {}).files == std::vector<ClassFile>{of("b/2.png", 1)});
    std::filesystem::remove(folder / tests / "b" / "2.png");
    CHECK(text_of(folder / "", Split::test).starts_with("lrcnn: folder '" + (folder / tests).string() + "' has no pictures in its folders; "));
    std::filesystem::rename(folder / tests, folder / "held out");
    for (const Split split : {Split::train, Split::test})
      CHECK(text_of(folder / "", split) ==
            "lrcnn: folder '" + folder.operator/("").string() + "' has a folder '" + train +
                "' of classes, and none for tests; the other part is a folder named test, testing, val, valid or validation; give it such a name, or "
                "name '" +
                (folder / train).string() + "', of which a part is then for tests");
    CHECK(text_of(folder / train) == "no error");
  }
}
TEST_CASE("image folder: classes that are called like parts") {
  const TestFolder folder;
  for (const char* of : {"bus/1.png", "car/2.png", "train/steam/3.png", "train/electric/4.png"}) write_photo(folder / of, 4, 4, 3, Pixels(48, 1));
  CHECK(find_class_files(folder / "", Split::train, {}).class_names == std::vector<std::string>{"bus", "car", "train"});
  write_photo(folder / "valid" / "5.png", 4, 4, 3, Pixels(48, 1));   // loose pictures
  CHECK(find_class_files(folder / "", Split::train, {}).class_names == std::vector<std::string>{"bus", "car", "train", "valid"});
  touch(folder / "train" / "._x.jpg");
  std::filesystem::remove(folder / "valid" / "5.png");
  write_photo(folder / "valid" / "steam" / "6.png", 4, 4, 3, Pixels(48, 1));
  std::filesystem::create_directory_symlink("x", folder / "x");   // leads to itself
  CHECK(find_class_files(folder / "", Split::train, {}).class_names == std::vector<std::string>{"electric", "steam"});
}
TEST_CASE("image folder: parts that have pictures beside their classes are no classes") {
  const auto photo = [](const std::filesystem::path& path) { write_photo(path, 4, 4, 3, Pixels(48, 1)); };
  const auto with_train = [&](const TestFolder& folder, const char* train) {
    for (const char* of : {"cat/1.png", "cat/2.png", "dog/3.png", "dog/4.png"}) photo(folder / train / of);
  };
  const std::vector<std::string> classes{"cat", "dog"};
  const auto refused = [&](const TestFolder& folder, const std::filesystem::path& untidy, const char* picture, const char* train) {
    for (const Split split : {Split::train, Split::test})
      CHECK(text_of(folder / "", split) == "lrcnn: folder '" + untidy.string() + "' has pictures in no class's folder, such as '" + picture +
                                               "'; a part has a folder for each class, with all of its pictures; move them, or name '" +
                                               (folder / train).string() + "', of which a part is then for tests");
    CHECK(find_class_files(folder / train, Split::test, {}).class_names == classes);   // as the error says
  };
  {   // Tests without labels, and others with them.
    const TestFolder folder;
    with_train(folder, "Train");
    for (const char* of : {"test/1.jpg", "val/cat/5.png", "val/dog/6.png"}) photo(folder / of);
    CHECK(find_class_files(folder / "", Split::train, {}).class_names == classes);
    const auto tests = find_class_files(folder / "", Split::test, {});
    CHECK(tests.class_names == classes);
    CHECK(tests.files == std::vector<ClassFile>{{folder / "val" / "cat" / "5.png", 0}, {folder / "val" / "dog" / "6.png", 1}});
    std::filesystem::remove(folder / "test" / "1.jpg");   // an empty folder, and one without labels that has a folder
    CHECK(find_class_files(folder / "", Split::test, {}).files == tests.files);
    touch(folder / "test" / "images" / "1.jpg");
    CHECK(find_class_files(folder / "", Split::test, {}).files == tests.files);
  }
  {   // Tests without labels alone.
    const TestFolder folder;
    with_train(folder, "train");
    for (const char* of : {"val/8.JPEG", "val/7.JPEG"}) touch(folder / of);
    refused(folder, folder / "val", "7.JPEG", "train");
    touch(folder / "test" / "1.jpg");
    refused(folder, folder / "test", "1.jpg", "train");
    // Beside other folders, they are classes.
    photo(folder / "bus" / "1.png");
    CHECK(find_class_files(folder / "", Split::train, {}).class_names == std::vector<std::string>{"bus", "test", "train", "val"});
  }
  {   // One picture too many.
    const TestFolder folder;
    with_train(folder, "training"), with_train(folder, "VAL");
    touch(folder / "README.md");
    touch(folder / "training" / ".hidden.jpg");
    CHECK(find_class_files(folder / "", Split::test, {}).class_names == classes);
    photo(folder / "VAL" / "montage.png");
    refused(folder, folder / "VAL", "montage.png", "training");
    photo(folder / "training" / "Folder.jpg");
    refused(folder, folder / "training", "Folder.jpg", "training");
    std::filesystem::remove(folder / "VAL" / "montage.png");
    refused(folder, folder / "training", "Folder.jpg", "training");
    std::filesystem::remove_all(folder / "VAL");
    refused(folder, folder / "training", "Folder.jpg", "training");
    std::filesystem::remove(folder / "training" / "Folder.jpg");
    with_train(folder, "VAL");
    CHECK(find_class_files(folder / "", Split::train, {}).class_names == classes);
  }
}
TEST_CASE("image folder: pictures in folders within a class, and a folder for training alone that is a class") {
  const TestFolder folder;
  write_photo(folder / "a" / "deep" / "er" / "1.png", 4, 4, 3, Pixels(48, 1));
  write_photo(folder / "a" / "2.PNG.png", 4, 4, 3, Pixels(48, 2));
  write_photo(folder / "train" / "3.png", 4, 4, 3, Pixels(48, 3));
  const ClassFiles found = find_class_files(folder / "");
  CHECK(found.class_names == std::vector<std::string>{"a", "train"});
  REQUIRE(found.files.size() == 3);
  CHECK(found.files[0].path.filename() == "2.PNG.png");
  CHECK(found.files[1].path.filename() == "1.png");
  // A class with a single picture is trained with it.
  const auto test = find_class_files(folder / "", Split::test, {}).files;
  REQUIRE(test.size() == 1);
  CHECK(test[0].label == 0);
}
TEST_CASE("image folder: links to folders are followed, but not those that lead back") {
  const TestFolder folder;
  write_photo(folder / "elsewhere" / "deep" / "3.png", 4, 4, 3, Pixels(48, 3));
  write_photo(folder / "set" / "a" / "1.png", 4, 4, 3, Pixels(48, 1));
  write_photo(folder / "set" / "a" / "deep" / "2.png", 4, 4, 3, Pixels(48, 2));
  write_photo(folder / "set" / "b" / "4.png", 4, 4, 3, Pixels(48, 4));
  using std::filesystem::create_directory_symlink;
  create_directory_symlink(folder / "elsewhere", folder / "set" / "a" / "linked");
  create_directory_symlink(folder / "elsewhere", folder / "set" / "c");
  for (const char* name : {"self", "again"}) create_directory_symlink(".", folder / "set" / "a" / name);
  create_directory_symlink("..", folder / "set" / "a" / "deep" / "class");
  create_directory_symlink("../..", folder / "set" / "a" / "deep" / "all");
  create_directory_symlink(folder / "set" / "a", folder / "elsewhere" / "back");   // from c as well, where it leads to pictures, not back
  create_directory_symlink(folder / "set", folder / "name");
  for (const char* name : {"set", "name"}) {
    const ClassFiles found = find_class_files(folder / name);
    CHECK(found.class_names == std::vector<std::string>{"a", "b", "c"});
    const auto of = [&](const char* path, std::int32_t label) { return ClassFile{folder / name / path, label}; };
    CHECK(found.files == std::vector<ClassFile>{of("a/1.png", 0), of("a/deep/2.png", 0), of("a/linked/deep/3.png", 0), of("b/4.png", 1),
                                                of("c/back/1.png", 2), of("c/back/deep/2.png", 2), of("c/deep/3.png", 2)});
    CHECK(has_class_folders(folder / name));
  }
  std::filesystem::remove_all(folder / "set" / "b");
  create_directory_symlink(".", folder / "set" / "b");
  CHECK(error_of<DataError>([&] {
          find_class_files(folder / "set");
        }).starts_with("lrcnn: class folder '" + (folder / "set" / "b").string() + "' has no pictures; "));
}
TEST_CASE("image folder: links to pictures that are gone are named, or left out and counted, as damaged ones are") {
  const TestFolder folder;
  write_photo(folder / "elsewhere" / "1.png", 4, 4, 3, Pixels(48, 1));
  for (const char* of : {"a/1.png", "a/2.png", "b/3.png", "b/4.png"}) write_photo(folder / "set" / of, 4, 4, 3, Pixels(48, 1));
  const auto link = [&](const std::filesystem::path& to, const char* name) { std::filesystem::create_symlink(to, folder / "set" / name); };
  link(folder / "elsewhere" / "1.png", "a/5.png");
  link(folder / "nowhere" / "6.png", "a/6.png");
  link("7.jpg", "b/7.jpg");   // leads to itself
  link("nowhere.txt", "b/notes.txt");
  CHECK(find_class_files(folder / "set").files.size() == 7);
  std::set<std::string> errors;
  Index pictures = 0;
  for (const Split split : {Split::train, Split::test}) {
    ImageFolderOptions options{.height = 4, .width = 4, .skipped = [&](const std::string& text) { errors.insert(text); }};
    pictures += load(folder / "set", split, options).size();
  }
  CHECK(pictures == 5);
  REQUIRE(errors.size() == 2);
  CHECK(
      errors.begin()->starts_with("lrcnn: image '" + (folder / "set" / "a" / "6.png").string() + "' cannot be opened: No such file or directory; "));
  CHECK(errors.rbegin()->starts_with("lrcnn: image '" + (folder / "set" / "b" / "7.jpg").string() + "' cannot be opened: "));
  std::filesystem::remove(folder / "set" / "b" / "7.jpg");
  const auto said = [&](Split split) { return text_of(folder / "set", split); };
  CHECK((said(Split::train) == *errors.begin() || said(Split::test) == *errors.begin()));
  std::filesystem::create_directory_symlink("c", folder / "set" / "c");   // whatever it was meant to lead to
  CHECK(text_of(folder / "set").starts_with("lrcnn: folder '" + (folder / "set").string() + "' cannot be read: "));
}
TEST_CASE("image folder: grey, alpha and 16 bits") {
  const TestFolder folder;
  write_photo(folder / "a" / "grey.png", 5, 5, 1, Pixels(25, 90));
  write_photo(folder / "a" / "grey_alpha.png", 5, 5, 2, colour(25, {91, 7}));
  write_photo(folder / "a" / "rgba.png", 5, 5, 4, colour(25, {10, 20, 30, 0}));
  write_photo(folder / "b" / "grey16.png", 5, 5, 1, std::vector<std::uint16_t>(25, 92 * 257 + 100));
  write_photo(folder / "b" / "rgb.jpg", 5, 5, 3, colour(25, {100, 100, 100}));
  write_photo(folder / "b" / "rgb16.tif", 5, 5, 3, std::vector<std::uint16_t>(75, 65535));
  ImageFolderOptions options{.height = 5, .width = 5, .split = {.test_share = 0.01}};
  const auto all = [&](Index channels) {
    options.channels = channels;
    std::multiset<int> first;
    for (const Split split : {Split::train, Split::test}) {
      const Dataset part = load(folder / "", split, options);
      CHECK(part.shape.c == channels);
      for (Index i = 0; i < part.size(); ++i) {
        first.insert(part.image(i)[0]);
        if (part.image(i)[0] == 10) {
          CHECK(part.image(i)[25] == 20);
          CHECK(part.image(i)[50] == 30);
        } else {
          for (const std::uint8_t b : part.image(i)) CHECK(b == part.image(i)[0]);
        }
      }
    }
    return first;
  };
  CHECK(all(3) == std::multiset<int>{10, 90, 91, 92, 100, 255});
  CHECK(all(1) == std::multiset<int>{18, 90, 91, 92, 100, 255});   // 0.299 * 10 + 0.587 * 20 + 0.114 * 30
  Index alpha = 0;
  for (const Split split : {Split::train, Split::test})
    if (const auto text = load(folder / "", split, options).description; text.find("without alpha of ") != std::string::npos)
      alpha += text.back() - '0';
  CHECK(alpha == 2);
}
TEST_CASE("image folder: damaged pictures are named, or left out and counted") {
  const TestFolder folder;
  write_colours(folder / "", 4);
  touch(folder / "green" / "picture0.jpg", "no JPEG file at all");
  std::filesystem::resize_file(folder / "red" / "picture1.png", 60);
  touch(folder / "blue" / "z.webp", "RIFF");
  ImageFolderOptions options{.height = 8, .width = 8, .split = {.test_share = 0.01}};
  std::set<std::string> errors;
  Index pictures = 0;
  for (const Split split : {Split::train, Split::test}) {
    options.skipped = {};
    const std::string error = text_of(folder / "", split, options);   // of one of them
    if (split == Split::train) CHECK(error.find((folder / "").string()) != std::string::npos);
    Index left_out = 0;
    options.skipped = [&](const std::string& text) { errors.insert(text), ++left_out; };
    const Dataset part = load(folder / "", split, options);
    check(part);
    pictures += part.size();
    for (Index i = 0; i < part.size(); ++i) {   // those that are left have their own labels
      const auto image = part.image(i);
      const std::array<int, 3> rgb{image[128], image[64], image[0]};
      CHECK(rgb[static_cast<std::size_t>(item(part.labels, i))] > 190);
    }
    const std::string text = ", without " + std::to_string(left_out) + " that cannot be read";
    CHECK((part.description.find(text) != std::string::npos) == (left_out > 0));
  }
  CHECK(pictures == 10);
  REQUIRE(errors.size() == 3);
  const auto said = [&](const std::string& text) {
    return std::any_of(errors.begin(), errors.end(), [&](const std::string& e) { return e.starts_with(text); });
  };
  CHECK(said("lrcnn: image '" + (folder / "green" / "picture0.jpg").string() +
             "' is of no format that this program reads; it reads JPEG, PNG, TIFF; "));
  CHECK(said("lrcnn: image '" + (folder / "blue" / "z.webp").string() + "' is of no format that this program reads; "));
}
TEST_CASE("image folder: folders that are none, and numbers that make no sense") {
  const TestFolder folder;
  const std::string where = folder.operator/("").string(), rule = "pictures to classify are a folder with a folder for each class, at least two; ";
  CHECK(text_of(folder / "no") == "lrcnn: folder '" + (folder / "no").string() + "' does not exist; " + rule + "check the path");
  touch(folder / "file");
  CHECK(text_of(folder / "file") == "lrcnn: folder '" + (folder / "file").string() + "' is not a folder; " + rule + "check the path");
  CHECK(text_of(folder / "") ==
        "lrcnn: folder '" + where + "' has no folders in it; " + rule + "put the pictures of each class into a folder with its name");
  write_photo(folder / "a" / "1.png", 4, 4, 3, Pixels(48, 1));
  write_photo(folder / "a" / "2.png", 4, 4, 3, Pixels(48, 1));
  CHECK(text_of(folder / "") ==
        "lrcnn: folder '" + where + "' has one class only, 'a'; " + rule + "name the folder above it, or add a folder with another class");
  touch(folder / "b" / "notes.txt");
  CHECK(text_of(folder / "") ==
        "lrcnn: class folder '" + (folder / "b").string() +
            "' has no pictures; each class has at least one; names of pictures end in .jpg, .jpeg, .png, .tif or .tiff; add pictures, "
            "or remove the folder");
  write_photo(folder / "b" / "1.png", 4, 4, 3, Pixels(48, 1));
  CHECK(text_of(folder / "", Split::train, {.height = 8, .width = 8, .most_bytes = 383}) ==
        "lrcnn: the 2 pictures of folder '" + where +
            "' take 384 bytes at 8x8; a data set in memory takes at most 383; take smaller or fewer pictures, "
            "or allow more");
  CHECK(text_of(folder / "", Split::train, {.height = 8, .width = 8, .threads = 1, .most_picture_bytes = 95}) ==
        "lrcnn: picture '" + (folder / "a").string() + "/" + find_class_files(folder / "", Split::train, {}).files[0].path.filename().string() +
            "' has 4 rows and 4 columns, and tiles of 48 bytes; a picture that is read whole takes at most 95 bytes with a tile of its file; make it "
            "smaller, or allow more");
  CHECK(text_of(folder / "", Split::train, {.height = 8, .width = 8, .most_picture_bytes = 96}) == "no error");
  CHECK(text_of(folder / "", Split::train, {.height = 8, .width = 8, .channels = 1, .most_picture_bytes = 64}) == "no error");   // 16 grey pixels
  CHECK(
      text_of(folder / "", Split::train, {.height = 0, .width = 8}) ==
      "lrcnn: pictures of 0x8 pixels and 3 channels are to be read by 0 threads; a picture has at least one pixel, of 1 or 3 channels, and there are "
      "not less than 0 threads; choose other numbers");
  CHECK(text_of(folder / "", Split::train, {.channels = 2}).starts_with("lrcnn: pictures of 64x64 pixels and 2 channels"));
  CHECK(
      text_of(folder / "", Split::train, {.split = {.test_share = 1}}) ==
      "lrcnn: a share of 1.000000 of the pictures is for tests, and at most 0 are taken; the share lies between 0 and 1, and no number is negative; "
      "choose other numbers");
  std::filesystem::rename(folder / "a" / "2.png", folder / "2.png");
  CHECK(text_of(folder / "", Split::test) ==
        "lrcnn: each class of folder '" + where +
            "' has one picture; pictures for tests are other ones than those that are trained with; add pictures");
  std::filesystem::rename(folder / "2.png", folder / "a" / "2.png");
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png"}) touch(folder / name, "damaged");
  CHECK(text_of(folder / "", Split::train, {.skipped = [](const std::string&) {}}) ==
        "lrcnn: no picture of folder '" + where + "' can be read; a data set has at least one; see what was said of each of them");
}
TEST_CASE("pictures as bytes: samples and channels that are refused") {
  const auto text = [](Index channels, SampleType sample) {
    const auto drawn = draw_image(20, 20, channels, 8, 8, sample);
    return error_of<DataError>([&] { read_byte_image(*drawn, 3, 1_MiB); });
  };
  CHECK(text(5, SampleType::u8) ==
        "lrcnn: picture 'drawn.img' has 5 channels of u8; a picture is grey or RGB, with or without alpha, of 8 or 16 bits; convert it");
  CHECK(text(3, SampleType::f32).starts_with("lrcnn: picture 'drawn.img' has 3 channels of f32; "));
  const auto drawn = draw_image(20, 23, 3, 8, 8);   // tiles come to their places
  const ByteImage image = read_byte_image(*drawn, 3, 1_MiB);
  const auto expected = drawn->pixels(whole(drawn->info()));
  CHECK(std::ranges::equal(std::as_bytes(std::span(image.pixels)), expected));
}
