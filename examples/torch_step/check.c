/* The C interface without Python: a step of a small network from C, its gradient against differences, and the texts of errors.

     torch_step_check

   Status 0 if all is as it should be; otherwise 1, and what is not on standard error. */
#include "torch_step.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int failures = 0;
static int returned = 0; /* tensors of this program that came back */
static void expect(int good, const char* what) {
  if (good) return;
  ++failures;
  fprintf(stderr, "not so: %s (the last error: %s)\n", what, torch_step_error());
}
static void expect_error(int result, const char* text) {
  if (result != 0 && strcmp(torch_step_error(), text) == 0) return;
  ++failures;
  fprintf(stderr, "expected the error\n  %s\nbut got %d and\n  %s\n", text, result, torch_step_error());
}
static void give_back(DLManagedTensor* tensor) {
  ++returned;
  free(tensor);
}
/* A tensor of this program's memory, which outlives it. */
static DLManagedTensor* tensor_of(double* data, int64_t* shape) {
  DLManagedTensor* tensor = calloc(1, sizeof(DLManagedTensor));
  tensor->dl_tensor.data = data;
  tensor->dl_tensor.device.device_type = kDLCPU;
  tensor->dl_tensor.ndim = 4;
  tensor->dl_tensor.dtype.code = kDLFloat;
  tensor->dl_tensor.dtype.bits = 64;
  tensor->dl_tensor.dtype.lanes = 1;
  tensor->dl_tensor.shape = shape;
  tensor->deleter = give_back;
  return tensor;
}
static double* values(DLManagedTensor* tensor) { return (double*)tensor->dl_tensor.data; }
static void release(DLManagedTensor* tensor) { tensor->deleter(tensor); }
static int64_t elements(const DLManagedTensor* tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->dl_tensor.ndim; ++i) count *= tensor->dl_tensor.shape[i];
  return count;
}
static double random_number(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}
/* <gradient, output> of the network. */
static double value_of(torch_step* step, double* x, int64_t* shape, const double* gradient) {
  DLManagedTensor* y = NULL;
  double sum = 0;
  expect(torch_step_forward(step, tensor_of(x, shape), &y) == 0, "a forward pass");
  for (int64_t i = 0; i < elements(y); ++i) sum += values(y)[i] * gradient[i];
  release(y);
  return sum;
}
static void check_network(const char* network) {
  int64_t shape[4] = {2, 2, 24, 16}, out[4];
  torch_step* step = NULL;
  expect(torch_step_create(network, "float64", shape, 0, 1, 7, &step) == 0, "a step is made");
  expect(torch_step_output_shape(step, out) == 0 && out[0] == 2 && out[1] == 3, "the output's extents");
  int64_t count = 2 * 2 * 24 * 16, count_out = out[0] * out[1] * out[2] * out[3];
  double *x = malloc(sizeof(double) * (size_t)count), *g = malloc(sizeof(double) * (size_t)count_out);
  for (int64_t i = 0; i < count; ++i) x[i] = random_number();
  for (int64_t i = 0; i < count_out; ++i) g[i] = random_number();
  DLManagedTensor *dx = NULL, *w = NULL, *dw = NULL;
  value_of(step, x, shape, g);
  expect(torch_step_backward(step, tensor_of(x, shape), tensor_of(g, out), &dx) == 0, "a backward pass");
  /* Along one direction in the input and in each parameter the value changes as the gradients say. */
  const double h = 1e-6;
  double slope = 0, *moved = malloc(sizeof(double) * (size_t)count), *back = malloc(sizeof(double) * (size_t)count);
  for (int64_t i = 0; i < count; ++i) {
    const double d = random_number();
    slope += values(dx)[i] * d, moved[i] = x[i] + h * d, back[i] = x[i] - h * d;
  }
  const double difference = (value_of(step, moved, shape, g) - value_of(step, back, shape, g)) / (2 * h);
  if (fabs(difference - slope) > 1e-5 * (1 + fabs(slope))) expect(0, "the gradient of the input is the slope");
  for (int64_t p = 0; p < torch_step_parameter_count(step); ++p) {
    if (torch_step_is_running(step, p)) continue;
    expect(torch_step_parameter(step, p, &w) == 0 && torch_step_gradient(step, p, &dw) == 0, "a parameter and its gradient");
    expect(elements(w) == elements(dw), "a gradient has its parameter's extents");
    const double old = values(w)[0];
    values(w)[0] = old + h;
    const double above = value_of(step, x, shape, g);
    values(w)[0] = old - h;
    const double below = value_of(step, x, shape, g);
    values(w)[0] = old;
    if (fabs((above - below) / (2 * h) - values(dw)[0]) > 1e-5 * (1 + fabs(values(dw)[0]))) expect(0, torch_step_parameter_name(step, p));
    release(w), release(dw);
  }
  /* Tensors live on when the step is gone. */
  expect(torch_step_parameter(step, 0, &w) == 0, "a parameter");
  torch_step_destroy(step);
  values(w)[0] += 1;
  release(w), release(dx);
  free(x), free(g), free(moved), free(back);
}
static void check_errors(void) {
  int64_t shape[4] = {1, 3, 16, 16}, other[4] = {1, 3, 16, 8}, tiny[4] = {1, 3, 1, 1};
  torch_step* step = NULL;
  DLManagedTensor* result = NULL;
  static double data[3 * 16 * 16];
  expect_error(torch_step_create("alexnet", "float32", shape, 0, 1, 0, &step),
               "lrcnn: the network 'alexnet' is unknown; there are vgg16, plain and norms; choose one, or add yours to torch_step.cpp");
  expect_error(torch_step_create("plain", "int8", shape, 0, 1, 0, &step),
               "lrcnn: the element type 'int8' is unknown; there are float32 and float64; choose one");
  expect_error(torch_step_create("plain", "float64", shape, -1, 1, 0, &step),
               "lrcnn: a budget of -1 bytes is given; a budget is a number of bytes, or 0 for layer by layer; give another number");
  expect_error(torch_step_create("plain", NULL, shape, 0, 1, 0, &step),
               "lrcnn: a null pointer is given for the network, its element type or its input; a step is made of these; give all three");
  expect_error(torch_step_create("plain", "float64", shape, 0, 1, 0, NULL),
               "lrcnn: a null pointer is given where a result is to go; results are written through pointers; give the address of a variable");
  expect(torch_step_create("plain", "float64", tiny, 0, 1, 0, &step) != 0 && strstr(torch_step_error(), "lrcnn: ") != NULL,
         "an input that is too small is refused");
  expect(torch_step_create("plain", "float64", shape, 1000, 1, 0, &step) != 0 && strstr(torch_step_error(), "lrcnn: a budget of ") != NULL,
         "a budget that is too small is refused");
  expect(step == NULL, "nothing is made where something is refused");
  const int before = returned;
  expect_error(torch_step_forward(NULL, tensor_of(data, shape), &result),
               "lrcnn: a null pointer is given as a step; torch_step_create() makes steps; look at what it returned");
  expect(torch_step_create("plain", "float64", shape, 0, 1, 0, &step) == 0, "a step is made");
  expect_error(torch_step_backward(step, tensor_of(data, shape), tensor_of(data, shape), &result),
               "lrcnn: a backward pass is asked for; it follows a forward pass; call torch_step_forward() first");
  expect_error(torch_step_gradient(step, 0, &result), "lrcnn: the gradient of 'conv1.weight' is asked for before a backward pass; a backward "
                                                      "pass computes it; call torch_step_backward() first");
  expect_error(torch_step_forward(step, tensor_of(data, other), &result), "lrcnn: a batch of shape 1x3x16x8 is given to a plan for 1x3x16x16; a "
                                                                          "plan is made for one shape; make a plan for this shape, or let a Trainer "
                                                                          "do it");
  expect(torch_step_forward(step, tensor_of(data, shape), &result) == 0, "a step goes on after an error");
  release(result), result = NULL;
  expect(torch_step_backward(step, tensor_of(data, shape), tensor_of(data, other), NULL) != 0 &&
             strstr(torch_step_error(), "targets of 3x16x8 are given for the network's output of 3x4x4") != NULL,
         "a gradient of another shape is refused");
  expect_error(torch_step_forward(step, NULL, &result),
               "lrcnn: no tensor is given, but a null pointer; DLPack's struct comes from the capsule of another program; give what "
               "PyCapsule_GetPointer returns, and look whether it failed");
  expect_error(torch_step_parameter(step, 99, &result),
               "lrcnn: parameter 99 is asked for; this network has parameters 0 to 7; ask torch_step_parameter_count() first");
  expect(torch_step_parameter_name(step, -1) == NULL && torch_step_is_running(step, 99) == 0, "there is no such parameter");
  torch_step_destroy(step), step = NULL;
  expect(torch_step_create("norms", "float64", shape, 0, 1, 0, &step) == 0, "a step is made");
  int64_t running = 0;
  while (running < torch_step_parameter_count(step) && !torch_step_is_running(step, running)) ++running;
  expect(torch_step_gradient(step, running, &result) != 0 && strstr(torch_step_error(), "; a running statistic has none; ask ") != NULL,
         "a running statistic has no gradient");
  torch_step_destroy(step);
  expect(result == NULL, "nothing is set where something is refused");
  expect(returned - before == 7, "tensors come back, also where a call fails");
}
int main(void) {
  check_network("plain");
  check_network("norms");
  check_errors();
  if (failures == 0) printf("the C interface does what its header says\n");
  return failures == 0 ? 0 : 1;
}
