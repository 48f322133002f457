/* OpenCL's functions, found at run time: nothing links against a driver or a loader. */
#ifndef OCL_API_H
#define OCL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

/* Calls X with the name of each function that a library must have. */
/* clang-format off */
#define OCL_FUNCTION_LIST(X) \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
    X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) \
    X(clCreateBuffer) X(clReleaseMemObject) \
    X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram) \
    X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clReleaseProgram) \
    X(clCreateKernel) X(clCreateKernelsInProgram) X(clReleaseKernel) \
    X(clSetKernelArg) X(clGetKernelWorkGroupInfo) \
    X(clEnqueueNDRangeKernel) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) \
    X(clEnqueueCopyBuffer) X(clEnqueueReadImage) X(clEnqueueWriteImage) X(clEnqueueCopyImage) \
    X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) X(clWaitForEvents) X(clGetEventInfo) \
    X(clGetEventProfilingInfo) X(clReleaseEvent) X(clFlush) X(clFinish)
/* clang-format on */

/* Functions of OpenCL 1.2 and the older ones that they replaced. A library may lack either; a
 * device of version 1.1 gets the older one even if the library has both. */
/* clang-format off */
#define OCL_OPTIONAL_LIST(X) \
    X(clCreateImage) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList) \
    X(clCreateImage2D) X(clEnqueueMarker) X(clEnqueueWaitForEvents) \
    X(clGetExtensionFunctionAddressForPlatform)
/* clang-format on */

/* Pointers to the functions of the OpenCL library that was opened; those of the optional list may
 * be NULL. */
typedef struct ocl_api {
/* a pointer to one function */
#define X(name) __typeof__(&name) name;
    OCL_FUNCTION_LIST(X)
    OCL_OPTIONAL_LIST(X)
#undef X
    void *library; /* never closed: vendors' drivers do not survive that */
} ocl_api;

extern ocl_api ocl_cl;

/* Opens the first library that has all but the optional ones; 0 when there is none, and *why
 * (static). Later calls give the first one's answer. */
int ocl_api_open(const char **why);

#endif
