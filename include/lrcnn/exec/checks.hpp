#pragma once
// What a run is given, checked before it begins: precision, loss, images and labels.
#include <lrcnn/data/row_source.hpp>
#include <lrcnn/layer/pixel_loss.hpp>
#include <lrcnn/network/table.hpp>
#include <lrcnn/policy/spec.hpp>
#include <string>
#include <string_view>
namespace lrcnn {
/// Errors:  PlanError if a policy asks for another precision than a backend has; `chooser`: what chooses the backend's type by itself
template <class B>
void check_precision(const PolicySpec& policy, std::string_view chooser) {
  if (policy.precision == Precision::of_backend || policy.precision == precision_of<B>()) return;
  throw PlanError(error_text("the policy asks for " + std::string(precision_name(policy.precision)) + ", and backend '" + std::string(B::name) +
                                 "' works in " + std::string(precision_name(precision_of<B>())),
                             "the type of the backend says its precision",
                             "use " + std::string(chooser) + ", which chooses the type, or leave the part out"));
}
/// Errors:  ShapeError if a loss over images, of that name, would be given a map: it would read one pixel of it
inline void check_image_loss(std::string_view loss, const Table& table) {
  const Shape& output = table.shape(table.size());
  if (output.h == 1 && output.w == 1) return;
  const FaultText text = fault_text(Fault::map_given);
  const std::string from = table.size() > 0 ? "layer '" + std::string(table.nodes.back().layer.name.view()) + "'" : "the input";
  throw ShapeError(
      error_text("the loss '" + std::string(loss) + "' over images is given the map " + to_string(output) + " of " + from, text.rule, text.change));
}
/// Errors:  DataError if a source's images are of another shape than the network's input
template <class M>
void check_source(const RowSource<M>& source, const Table& table) {
  if (source.shape() != table.input)
    throw DataError(error_text("a batch of shape " + to_string(source.shape()) + " is given to a plan for " + to_string(table.input),
                               "a plan is made for one shape", "make a plan for this shape, or let a Trainer do it"));
}
/// What a loss over pixels, of that name, says where none counts. `pixels`: which ones.
inline DataError no_pixel_counts(std::string_view loss, const std::string& pixels) {
  return DataError(error_text("none of the " + pixels + " counts for the loss '" + std::string(loss) + "'",
                              "the mean is over pixels that are not ignored and have a weight",
                              "correct the masks, or the loss's `ignore` or weights, or leave the batch out"));
}
/// Labels of a loss over images, of that name. Those that lie on a device are looked at by the loss.
/// Errors:  DataError if they are masks or targets, are not as many as images, or are outside the network's classes
inline void check_image_labels(std::string_view loss, const Labels& labels, const Table& table) {
  if (labels.kind() != LabelKind::images)
    throw DataError(
        error_text(std::string(labels.kind() == LabelKind::pixels ? "masks" : "targets") + " are given to the loss '" + std::string(loss) + "'",
                   "it wants one label for each image", "give a label for each image, or train with a loss over pixels"));
  if (labels.size() != table.input.n)
    throw DataError(error_text(std::to_string(labels.size()) + " labels are given for " + std::to_string(table.input.n) + " images",
                               "every image has one label", "give as many labels as images"));
  if (labels.on_device()) return;   // the loss looks at them
  const Index classes = table.shape(table.size()).c;
  const auto label = labels.on_host();
  for (std::size_t i = 0; i < label.size(); ++i)
    if (label[i] < 0 || label[i] >= classes)
      throw DataError(error_text("label " + std::to_string(label[i]) + " of image " + std::to_string(i) + " is outside the network's " +
                                     std::to_string(classes) + " classes",
                                 "labels are 0 .. classes - 1", "correct the labels, or widen the last layer"));
}
}   // namespace lrcnn
