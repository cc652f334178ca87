#pragma once
#include <lrcnn/version.hpp>
