/* Version of the product and of the plugin ABI. */
#ifndef CNNRUN_VERSION_H
#define CNNRUN_VERSION_H

#define CNNRUN_VERSION "0.1.0"

/* A plugin loads when its major is the host's and its minor is not above it. */
#define CNR_ABI_MAJOR 1
#define CNR_ABI_MINOR 1
#define CNR_ABI ((uint32_t)CNR_ABI_MAJOR << 16 | (uint32_t)CNR_ABI_MINOR)

#endif
