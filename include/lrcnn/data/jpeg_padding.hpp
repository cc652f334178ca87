#pragma once
// Which of libjpeg's warnings is none, in JPEG files and in TIFF files with JPEG tiles.
#include <lrcnn/core/language.hpp>
#include <string_view>
namespace lrcnn::detail {
/// Whether a warning of libjpeg speaks of padding: bytes that belong to nothing before the end of the image, as some cameras and scanners leave
/// them. No pixel depends on them. Before other markers such bytes may be what is left of damaged data, whose pixels are wrong; and libtiff tells
/// only the first warning of a tile, so one that is passed over must be the last.
inline bool is_jpeg_padding(std::string_view warning) { return warning.find("extraneous bytes before marker 0xd9") != std::string_view::npos; }
}   // namespace lrcnn::detail
