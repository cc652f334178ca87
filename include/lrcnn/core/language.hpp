#pragma once
// Every header of lrcnn reads this first. A compiler that was not told to use C++20 says so once, instead of a thousand things that follow.
#if __cplusplus < 202002L
#error "lrcnn: the compiler reads an older C++; lrcnn needs C++20; add -std=c++20, or link the CMake target lrcnn::lrcnn"
#include <lrcnn/core/needs-c++20>   // is not there, so that the compiler stops here
#endif
