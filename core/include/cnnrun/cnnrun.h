/* The complete C API for applications, as libcnnrun exports it. Plugins include plugin.h
 * instead. */
#pragma once

#include <cnnrun/engine.h>
#include <cnnrun/lab.h>
#include <cnnrun/object.h>
#include <cnnrun/placement.h>
#include <cnnrun/power.h>
