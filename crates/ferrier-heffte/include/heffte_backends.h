// All backends are in heffte_common.h; this name is one that programs include.
#ifndef HEFFTE_BACKENDS_H
#define HEFFTE_BACKENDS_H

#include "heffte_common.h"

#endif
