/* One training step of a network as a C library: forward, and backward from the gradient of the output to those of input and parameters.

   Tensors are DLPack's structs. One that a function is given it takes over, and calls its deleter once, also where it fails. One that a
   function returns is the caller's, who has the deleter called once; its memory lives until then, also when the step is destroyed before.

   Functions return 0, or -1 after an error; torch_step_error() says which. What they were to return is not set then. One thread at a time
   may use a step. */
#ifndef TORCH_STEP_H
#define TORCH_STEP_H
#include <dlpack/dlpack.h>
#include <stdint.h>
#if defined(_WIN32)
#define TORCH_STEP_API __declspec(dllexport)
#else
#define TORCH_STEP_API __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
extern "C" {
#endif
typedef struct torch_step torch_step;
/* The last error of this thread. Good until the next call. */
TORCH_STEP_API const char* torch_step_error(void);
/* Makes a step. network: "vgg16", "plain" or "norms"; dtype: "float32" or "float64", of parameters and computations; input: N, C, H, W.
   budget: bytes that the step may take for parameters, gradients, computation and the gradient of the input; 0: as many as layer by layer
   takes. threads: 0 for all. seed: of the first parameters. */
TORCH_STEP_API int torch_step_create(const char* network, const char* dtype, const int64_t input[4], int64_t budget, int threads, uint64_t seed,
                                     torch_step** step);
TORCH_STEP_API void torch_step_destroy(torch_step* step);
/* N, C, H, W of the output. */
TORCH_STEP_API int torch_step_output_shape(const torch_step* step, int64_t shape[4]);
/* Bytes of the largest arena so far: what running takes beside parameters and gradients. */
TORCH_STEP_API int64_t torch_step_arena_bytes(const torch_step* step);
TORCH_STEP_API int64_t torch_step_parameter_count(const torch_step* step);
/* "conv1.weight"; null if there is none of that number. */
TORCH_STEP_API const char* torch_step_parameter_name(const torch_step* step, int64_t number);
/* Whether it is a running statistic, which has no gradient: 1 or 0. */
TORCH_STEP_API int torch_step_is_running(const torch_step* step, int64_t number);
/* A parameter itself: what is written there, the next run uses. */
TORCH_STEP_API int torch_step_parameter(torch_step* step, int64_t number, DLManagedTensor** tensor);
/* The gradient of a parameter from the last backward pass. Later passes leave it alone. */
TORCH_STEP_API int torch_step_gradient(torch_step* step, int64_t number, DLManagedTensor** tensor);
/* The output for an input, as in training: norms over a batch use the batch's statistics, and mix them into the running ones. */
TORCH_STEP_API int torch_step_forward(torch_step* step, DLManagedTensor* input, DLManagedTensor** output);
/* Gradients for the input of the last forward pass, from the gradient of its output. input_gradient: null if it is not wanted. */
TORCH_STEP_API int torch_step_backward(torch_step* step, DLManagedTensor* input, DLManagedTensor* output_gradient, DLManagedTensor** input_gradient);
#ifdef __cplusplus
}
#endif
#endif
