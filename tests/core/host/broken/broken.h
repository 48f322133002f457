/* Shared by the plugins of this folder: one valid operator, and a valid description to damage. */
#ifndef BROKEN_H
#define BROKEN_H

#include <cnnrun/plugin.h>

/* Method infer: the output is like the input. */
static cnr_status broken_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    (void)err;
    outputs[0]->dtype = node->inputs[0]->dtype;
    outputs[0]->rank = node->inputs[0]->rank;
    memcpy(outputs[0]->dim, node->inputs[0]->dim, sizeof outputs[0]->dim);
    return CNR_OK;
}

/* Method reference: copies the input. */
static cnr_status broken_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    memcpy(run->outputs[0]->data, run->node->inputs[0]->data, run->outputs[0]->bytes);
    return CNR_OK;
}

static const cnr_port broken_port = {"x", 0, 0, 0};

/* A sound operator, for plugins that break one thing. */
#define BROKEN_OP(text) \
    { \
        .size = sizeof(cnr_op), .version = 1, .name = text, .port_size = sizeof(cnr_port), \
        .n_inputs = 1, .n_outputs = 1, .inputs = &broken_port, .outputs = &broken_port, \
        .infer = broken_infer, .reference = broken_reference \
    }

/* The description of a valid plugin; fields given after it replace its own. */
#define BROKEN_SOUND(text, init_fn) \
    .size = sizeof(cnr_plugin), .magic = CNR_PLUGIN_MAGIC, .abi = CNR_ABI, \
    .signature = CNR_SIGNATURE, .name = text, .version = "1.2", .summary = "a test", \
    .licence = "MIT", .init = init_fn

/* The plugin's entry. */
#define BROKEN_ENTRY(plugin) \
    CNR_PLUGIN_ENTRY { \
        (void)host_abi; \
        return plugin; \
    }

#endif
