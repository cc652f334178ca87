#pragma once
// Tensors as a folder of NumPy's files: fc.weight.npy, fc.bias.npy, ...
//
// numpy.load reads each of them, numpy.save writes them. The name of a file without .npy is the tensor's; other files are not looked at.
#include <lrcnn/core/atomic_file.hpp>
#include <lrcnn/core/open_file.hpp>
#include <lrcnn/data/npy_header.hpp>
#include <lrcnn/interop/tensor_file.hpp>
#include <unordered_set>
namespace lrcnn {
namespace detail {
/// "F32" for what TensorFile reads, "int64", "big-endian float32" and so on for the rest.
inline std::string type_of_npy(const NpyHeader& header) {
  if (header.big_endian) return "big-endian " + npy_type_name(header);
  if (header.fortran_order && header.shape.size() > 1) return npy_type_name(header) + " in Fortran order";
  if (header.kind == 'f')
    for (const TensorType type : {TensorType::f64, TensorType::f32, TensorType::f16})
      if (static_cast<Index>(type_bytes(type)) == header.bytes) return std::string(type_name(type));
  return npy_type_name(header);
}
}   // namespace detail
/// The tensors of a folder. Opening it reads the files' headers only; a file is opened again when its tensor is read.
class NpyFolder final : public TensorFile {
 public:
  /// Errors:  DataError if the folder cannot be read or has no .npy file, or one of these is none that parse_npy_header() takes
  explicit NpyFolder(const std::filesystem::path& path) : description_("folder '" + path.string() + "'") {
    std::error_code error;
    std::vector<std::filesystem::path> paths;
    for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
      if (at->path().extension() == ".npy") paths.push_back(at->path());
    if (error)
      throw DataError(error_text(description_ + " cannot be read: " + error.message(), "it has a .npy file for each tensor",
                                 "check the path and its permissions"));
    if (paths.empty()) throw DataError(error_text(description_ + " has no .npy files", "it has one for each tensor", "check the path"));
    std::sort(paths.begin(), paths.end());
    for (const auto& file : paths) add(file);
  }
  const std::string& description() const override { return description_; }
  std::span<const StoredTensor> tensors() const override { return tensors_; }

 private:
  struct Place {
    std::filesystem::path path{};
    FileIdentity identity{};
    Index begin = 0;
  };
  void add(const std::filesystem::path& path) {
    const OpenFile file(path, "file");
    std::vector<std::uint8_t> first(std::min(npy_header_limit, static_cast<std::size_t>(file.size())));
    file.read(0, std::as_writable_bytes(std::span(first)));
    file.check_unchanged();
    const NpyHeader header = parse_npy_header(first, file.size(), "file '" + path.string() + "'");
    tensors_.push_back({path.stem().string(), header.shape, detail::type_of_npy(header)});
    places_.push_back({path, file.identity(), header.begin});
  }
  void read_bytes(std::size_t i, Index begin, std::span<std::byte> bytes) const override {
    const Place& place = places_[i];
    const OpenFile file(place.path, place.identity, "file");
    file.read(place.begin + begin, bytes);
    file.check_unchanged();
  }
  std::string description_;
  std::vector<StoredTensor> tensors_;
  std::vector<Place> places_;
};
/// Writes each tensor to a file of a new folder, which takes its name when all of them are there.
/// Errors:  DataError if there is a folder or file of that name that is not an empty folder, it cannot be written, a name has a '/', two tensors
///          have one name, or a tensor is BF16, which NumPy does not have; ShapeError if a tensor's bytes are not those of its type and shape.
///          Nothing is left behind then
inline void write_npy_folder(const std::filesystem::path& folder, std::span<const NamedTensor> tensors) {
  namespace fs = std::filesystem;
  const fs::path path = folder.has_filename() ? folder : folder.parent_path();   // "weights/" is "weights"
  const std::string who = "folder '" + path.string() + "'";
  std::error_code error;
  if (fs::exists(path, error) && !(fs::is_directory(path, error) && fs::is_empty(path, error)))
    throw DataError(error_text(who + " is there already", "weights go to a new folder, so that nothing of another network is among them",
                               "choose another name, or remove it"));
  std::unordered_set<std::string_view> names;
  for (const NamedTensor& t : tensors) {
    if (t.name.empty() || t.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      throw DataError(error_text("tensor '" + t.name + "' cannot be written to " + who, "its name becomes that of a file", "choose another name"));
    if (t.type == TensorType::bf16)
      throw DataError(error_text("tensor '" + t.name + "' cannot be written to " + who + ": it is BF16", "NumPy has float16, float32 and float64",
                                 "save in one of these types"));
    if (!names.insert(t.name).second)
      throw DataError(error_text(who + " cannot be written: two tensors have the name '" + t.name + "'", "names are unique", "name one otherwise"));
    check_tensor_bytes(t, who);
  }
  static std::atomic<unsigned> number{0};
  const fs::path part = path.string() + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  if (!fs::create_directory(part, error)) throw detail::cannot_write(path, error ? error.value() : EEXIST);
  try {
    for (const NamedTensor& t : tensors) {
      NpyHeader header;
      header.kind = t.type == TensorType::i64 ? 'i' : 'f', header.bytes = static_cast<Index>(type_bytes(t.type)), header.shape = t.shape;
      const std::string beginning = npy_header_bytes(header);
      AtomicFile file(part / (t.name + ".npy"));
      file.write(std::as_bytes(std::span(beginning)));
      file.write(t.bytes);
      file.finish();
    }
    fs::rename(part, path, error);
    if (error) throw detail::cannot_write(path, error.value());
  } catch (...) {
    fs::remove_all(part, error);
    throw;
  }
  detail::flush_folder(path.parent_path());
}
}   // namespace lrcnn
