#pragma once
// What is in a folder of pictures with a folder for each class, as torchvision's ImageFolder finds it.
#include <lrcnn/core/error.hpp>
#include <lrcnn/core/text.hpp>
#include <lrcnn/data/dataset.hpp>
#include <lrcnn/data/transform.hpp>
#include <algorithm>
#include <filesystem>
namespace lrcnn {
/// A picture's file and its class.
struct ClassFile {
  std::filesystem::path path{};
  std::int32_t label = 0;
  friend bool operator==(const ClassFile&, const ClassFile&) = default;
};
/// Files of pictures, sorted by class, then by folder and name.
struct ClassFiles {
  std::vector<std::string> class_names{};   ///< sorted
  std::vector<ClassFile> files{};
  std::filesystem::path folder{};   ///< that has the classes: a part's own, if there is one
};
namespace detail {
/// Whether a name ends like a picture's: the endings of torchvision's ImageFolder.
inline bool names_picture(const std::filesystem::path& path) {
  const std::string ending = lower_case(path.extension().string());
  constexpr std::array<std::string_view, 9> endings{".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".webp", ".ppm", ".pgm"};
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}
inline bool hidden(const std::filesystem::path& path) { return path.filename().string().starts_with('.'); }
/// What lies in a folder, sorted, hidden files and folders left out. Links are what they lead to. A link that is called like a picture and leads
/// nowhere is one, and what else cannot be looked at is a folder: so whoever opens them says what is wrong.
struct FolderContent {
  std::vector<std::filesystem::path> folders{}, pictures{};
  explicit FolderContent(const std::filesystem::directory_iterator& entries) {
    std::error_code error;
    const auto gone = [&] { return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory; };
    for (const auto& entry : entries) {
      if (hidden(entry.path())) continue;
      const bool picture = names_picture(entry.path());
      if (entry.is_directory(error) || (error && !gone() && !picture)) folders.push_back(entry.path());
      else if (picture && (entry.is_regular_file(error) || !entry.exists(error))) pictures.push_back(entry.path());
    }
    std::sort(folders.begin(), folders.end());
    std::sort(pictures.begin(), pictures.end());
  }
};
/// The pictures in a folder and the folders in it, sorted. Links to folders are followed, but not back into one that is being read: that would
/// not end. around: the canonical names of these.
/// Errors:  filesystem_error if a folder cannot be read
inline std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder, std::vector<std::filesystem::path> around) {
  auto own_name = std::filesystem::canonical(folder);
  if (std::find(around.begin(), around.end(), own_name) != around.end()) return {};
  around.push_back(std::move(own_name));
  FolderContent content{std::filesystem::directory_iterator(folder)};
  for (const auto& inner : content.folders) {
    const auto more = pictures_in(inner, around);
    content.pictures.insert(content.pictures.end(), more.begin(), more.end());
  }
  return std::move(content.pictures);
}
/// The folders of both parts, if a folder holds them as folders of their own, without pictures beside the classes; empty paths otherwise. Capitals do
/// not matter.
struct PartFolders {
  std::filesystem::path train{}, test{};
};
/// Errors:  DataError if there are classes to train, and what seems to be the other part has none of its names, or there is nothing else; if all
///          folders are called like parts, and train, or each other one, has pictures beside its classes
inline PartFolders part_folders(const std::filesystem::path& folder) {
  const auto content_of = [](const std::filesystem::path& of) {
    std::error_code none;   // whoever reads the folder says what is wrong with it
    return FolderContent(std::filesystem::directory_iterator(of, none));
  };
  const FolderContent all = content_of(folder);
  struct Part {
    std::filesystem::path path;
    FolderContent content;
  };
  const auto named = [&](std::initializer_list<std::string_view> names) {
    std::vector<Part> found;
    for (const std::string_view name : names)
      for (const auto& inner : all.folders)
        if (lower_case(inner.filename().string()) == name) found.push_back({inner, content_of(inner)});
    return found;
  };
  const auto trains = named({"train", "training"}), tests = named({"test", "testing", "val", "valid", "validation"});
  if (trains.empty()) return {};
  const Part& train = trains[0];
  const auto& classes = train.content.folders;
  const auto alike = [&](const FolderContent& part) {   // has a class that train has
    return std::any_of(part.folders.begin(), part.folders.end(), [&](const std::filesystem::path& of) {
      return std::find(classes.begin(), classes.end(), train.path / of.filename()) != classes.end();
    });
  };
  const auto tidy = [](const Part& part) { return part.content.pictures.empty(); };
  auto test = std::find_if(tests.begin(), tests.end(), [&](const Part& part) { return tidy(part) && alike(part.content); });
  if (test == tests.end()) test = std::find_if(tests.begin(), tests.end(), tidy);
  if (tidy(train) && test != tests.end()) return {train.path, test->path};
  if (!tidy(train) || !tests.empty()) {   // pictures beside the classes, if it is no class that is called so
    if (classes.empty() || trains.size() + tests.size() < all.folders.size()) return {};
    const Part& untidy = tidy(train) ? tests[0] : train;
    throw DataError(error_text("folder '" + untidy.path.string() + "' has pictures in no class's folder, such as '" +
                                   untidy.content.pictures.at(0).filename().string() + "'",
                               "a part has a folder for each class, with all of its pictures",
                               "move them, or name '" + train.path.string() + "', of which a part is then for tests"));
  }
  const bool other_part = std::any_of(all.folders.begin(), all.folders.end(),
                                      [&](const std::filesystem::path& other) { return other != train.path && alike(content_of(other)); });
  if (classes.empty() || !(other_part || all.folders.size() == 1)) return {};
  throw DataError(error_text("folder '" + folder.string() + "' has a folder '" + train.path.filename().string() + "' of classes, and none for tests",
                             "the other part is a folder named test, testing, val, valid or validation",
                             "give it such a name, or name '" + train.path.string() + "', of which a part is then for tests"));
}
}   // namespace detail
/// Whether a folder looks like one with a folder for each class: there is a folder with a picture in it, however deep.
inline bool has_class_folders(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return false;
  try {
    const auto own_name = std::filesystem::canonical(folder);
    for (const auto& inner : detail::FolderContent(std::filesystem::directory_iterator(folder)).folders)
      if (!detail::pictures_in(inner, {own_name}).empty()) return true;
  } catch (const std::filesystem::filesystem_error&) {   // whoever reads it says what is wrong
  }
  return false;
}
/// Finds the pictures of a folder with a folder for each class. Hidden files and files with other endings than pictures have do not count.
/// Links to folders are followed, but for those that lead back to a folder that they lie in; links to pictures count, even if these are gone.
/// `some`: of the classes are enough, as for tests.
/// Errors:  DataError if the folder does not exist or cannot be read, has no folders or no pictures, or, without `some`, one class only or one
///          without a picture
inline ClassFiles find_class_files(const std::filesystem::path& folder, bool some = false) {
  const std::string who = "folder '" + folder.string() + "'";
  const auto refuse = [&](const std::string& what, const char* how) {
    throw DataError(error_text(who + what, "pictures to classify are a folder with a folder for each class, at least two", how));
  };
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) refuse(" does not exist", "check the path");
  if (!std::filesystem::is_directory(folder, error)) refuse(" is not a folder", "check the path");
  ClassFiles found{.folder = folder};
  try {
    const auto classes = detail::FolderContent(std::filesystem::directory_iterator(folder)).folders;
    if (classes.empty()) refuse(" has no folders in it", "put the pictures of each class into a folder with its name");
    if (classes.size() == 1 && !some)
      refuse(" has one class only, '" + classes[0].filename().string() + "'", "name the folder above it, or add a folder with another class");
    const auto own_name = std::filesystem::canonical(folder);
    for (const auto& of : classes) {
      const auto label = static_cast<std::int32_t>(found.class_names.size());
      const auto pictures = detail::pictures_in(of, {own_name});
      if (pictures.empty() && !some)
        throw DataError(error_text("class folder '" + of.string() + "' has no pictures",
                                   "each class has at least one; names of pictures end in .jpg, .jpeg, .png, .tif or .tiff",
                                   "add pictures, or remove the folder"));
      found.class_names.push_back(of.filename().string());
      for (const auto& path : pictures) found.files.push_back({path, label});
    }
    if (found.files.empty()) refuse(" has no pictures in its folders", "put pictures into them");
  } catch (const std::filesystem::filesystem_error& e) {
    refuse(" cannot be read: " + e.code().message() + " ('" + e.path1().string() + "')", "change the permissions");
  }
  return found;
}
/// How a folder without parts of its own is split, and how many pictures are taken.
struct SplitOptions {
  std::uint64_t seed = 0;
  double test_share = 1.0 / 6;   ///< of each class, rounded down; at least one if the class has two pictures
  Index most_images = 0;         ///< of a part, drawn at random from all classes; 0: all
};
/// The pictures of one part. If a folder has folders train (or training) and test (or testing, val, valid, validation: the first that has no pictures
/// beside its folders), these are the parts, and not all classes need be tested; otherwise each class is split at random, the same for the same seed
/// and files.
/// Errors:  as find_class_files(); DataError if the test part has a class that the training part has not, parts have pictures beside their classes,
///          train has classes and nothing is for tests, no class has a second picture to test with, or a number makes no sense
inline ClassFiles find_class_files(const std::filesystem::path& folder, Split split, const SplitOptions& options) {
  if (!(options.test_share > 0 && options.test_share < 1) || options.most_images < 0)
    throw DataError(error_text("a share of " + std::to_string(options.test_share) + " of the pictures is for tests, and at most " +
                                   std::to_string(options.most_images) + " are taken",
                               "the share lies between 0 and 1, and no number is negative", "choose other numbers"));
  ClassFiles part;
  if (const detail::PartFolders parts = detail::part_folders(folder); !parts.train.empty()) {
    part = find_class_files(parts.train);
    if (split == Split::test) {
      const ClassFiles tests = find_class_files(parts.test, true);
      const auto label_of = [&](const std::string& name) {
        const auto at = std::find(part.class_names.begin(), part.class_names.end(), name);
        if (at != part.class_names.end()) return static_cast<std::int32_t>(at - part.class_names.begin());
        throw DataError(error_text("folder '" + parts.test.string() + "' has the class '" + name + "', which '" + parts.train.string() + "' has not",
                                   "what is tested has been trained", "move the folder, or give it the class's name"));
      };
      part.files = tests.files, part.folder = tests.folder;
      for (ClassFile& file : part.files) file.label = label_of(item(tests.class_names, file.label));
    }
  } else {
    ClassFiles all = find_class_files(folder);
    part.class_names = all.class_names, part.folder = folder;
    for (std::size_t begin = 0, end = 0; begin < all.files.size(); begin = end) {
      while (end < all.files.size() && all.files[end].label == all.files[begin].label) ++end;
      const auto count = static_cast<Index>(end - begin);
      const Index tests = count < 2 ? 0 : std::max<Index>(static_cast<Index>(options.test_share * static_cast<double>(count)), 1);
      std::vector<bool> tested(end - begin);
      const auto order = permutation(count, purpose_random(options.seed, "split", all.files[begin].label));
      for (Index i = 0; i < tests; ++i) tested[static_cast<std::size_t>(item(order, i))] = true;
      for (std::size_t i = begin; i < end; ++i)
        if (tested[i - begin] == (split == Split::test)) part.files.push_back(all.files[i]);
    }
    if (part.files.empty())
      throw DataError(error_text("each class of folder '" + folder.string() + "' has one picture",
                                 "pictures for tests are other ones than those that are trained with", "add pictures"));
  }
  if (const auto count = static_cast<Index>(part.files.size()); options.most_images > 0 && options.most_images < count) {
    auto order = permutation(count, purpose_random(options.seed, "subset", static_cast<Index>(split)));
    order.resize(static_cast<std::size_t>(options.most_images));
    std::sort(order.begin(), order.end());
    std::vector<ClassFile> some;
    for (const Index i : order) some.push_back(item(part.files, i));
    part.files = std::move(some);
  }
  return part;
}
}   // namespace lrcnn
