// lrcnn::cudnn as a project compiles it that leaves fp16 out.
#define LRCNN_WITHOUT_FP16
#include <lrcnn/backend/cudnn/library.cpp>
