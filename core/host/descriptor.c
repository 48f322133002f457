/* Checks what a plugin registers before anyone relies on it. */
#include "core/host/internal.h"

/* Where each kind's descriptor keeps its name, by kind. */
static const uint32_t name_offset[] = {
#define X(NAME, value, text, type) [value] = (uint32_t)offsetof(type, name),
    CNR_KIND_LIST(X)
#undef X
};

/* The first field of every descriptor. */
static uint32_t size_of(const void *descriptor) {
    return *(const uint32_t *)descriptor;
}

/* True when `field` of a descriptor is there and set. */
#define LACKS(d, field) (!CNRI_HAS(d, field))

static const char *fault_of_schema(int32_t n, const void *rows, uint32_t row_size) {
    if (n < 0 || (n > 0 && !rows)) return "has no attribute rows";
    if (n > 0 && row_size < offsetof(cnr_attr_spec, min))
        return "has attribute rows that are too short";
    for (int32_t i = 0; i < n; i++) {
        cnr_attr_spec room;
        const cnr_attr_spec *row = cnri_spec_at(rows, row_size, i, &room);
        if (!row->name || !*row->name) return "has an attribute without a name";
        if (row->type < CNR_ATTR_INT || row->type > CNR_ATTR_DTYPE)
            return "has an attribute of an unknown type";
        if (row->type == CNR_ATTR_ENUM && (!row->choices || !row->choices[0]))
            return "has an attribute without choices";
    }
    return NULL;
}

static const char *fault_of_op(const cnr_op *op) {
    if (LACKS(op, infer)) return "lacks the hook infer";
    if (LACKS(op, reference)) return "lacks the hook reference";
    if (op->n_inputs < 0 || (op->n_inputs > 0 && !op->inputs)) return "has no input rows";
    if (op->n_outputs < 1 || !op->outputs) return "has no output rows";
    if (op->port_size < offsetof(cnr_port, help)) return "has port rows that are too short";
    return fault_of_schema(op->n_attrs, op->attrs, op->attr_spec_size);
}

static const char *fault_of_kernel(const cnr_kernel *kernel) {
    if (LACKS(kernel, op) || LACKS(kernel, device)) return "names no operator or no device";
    if (LACKS(kernel, accepts)) return "lacks the hook accepts";
    if (LACKS(kernel, run)) return "lacks the hook run";
    if ((kernel->prepare != NULL) != (kernel->prepare_size != NULL))
        return "has only one of the hooks prepare and prepare_size";
    return NULL;
}

static const char *fault_of_device(const cnr_device_class *cls) {
    if (LACKS(cls, family) || !*cls->family) return "has no family";
    if (LACKS(cls, count) || LACKS(cls, describe)) return "lacks the hooks count and describe";
    if (LACKS(cls, open) || LACKS(cls, close)) return "lacks the hooks open and close";
    if (LACKS(cls, alloc) || LACKS(cls, free)) return "lacks the hooks alloc and free";
    if (LACKS(cls, write) || LACKS(cls, read)) return "lacks the hooks write and read";
    if (LACKS(cls, stream_open) || LACKS(cls, stream_close) || LACKS(cls, sync))
        return "lacks the hooks of streams";
    return NULL;
}

static const char *fault_of_encoding(const cnr_encoding *encoding) {
    if (LACKS(encoding, encode_size) || LACKS(encoding, encode))
        return "lacks the hooks encode_size and encode";
    if (LACKS(encoding, check) || LACKS(encoding, decode))
        return "lacks the hooks check and decode";
    return fault_of_schema(encoding->n_attrs, encoding->attrs, encoding->attr_spec_size);
}

static const char *fault_of_object(const cnr_object *object) {
    if (object->n_methods < 0 || (object->n_methods > 0 && LACKS(object, methods)))
        return "has no method names";
    if (LACKS(object, create) || LACKS(object, call) || LACKS(object, destroy))
        return "lacks the hooks create, call and destroy";
    return NULL;
}

const char *cnri_descriptor_fault(int32_t kind, const void *descriptor) {
    switch ((cnr_kind)kind) {
    case CNR_KIND_OPERATOR: return fault_of_op(descriptor);
    case CNR_KIND_KERNEL: return fault_of_kernel(descriptor);
    case CNR_KIND_DEVICE: return fault_of_device(descriptor);
    case CNR_KIND_ENCODING: return fault_of_encoding(descriptor);
    case CNR_KIND_OBJECT: return fault_of_object(descriptor);
    case CNR_KIND_REWRITE: {
        const cnr_rewrite *d = descriptor;
        return LACKS(d, apply) ? "lacks the hook apply" : NULL;
    }
    case CNR_KIND_IMPORTER: {
        const cnr_importer *d = descriptor;
        return LACKS(d, accepts) || LACKS(d, import) ? "lacks the hooks accepts and import" : NULL;
    }
    case CNR_KIND_EXPORTER: {
        const cnr_exporter *d = descriptor;
        return LACKS(d, accepts) || LACKS(d, write) ? "lacks the hooks accepts and write" : NULL;
    }
    case CNR_KIND_SOURCE: {
        const cnr_source *d = descriptor;
        return LACKS(d, accepts) || LACKS(d, open) || LACKS(d, read) || LACKS(d, close)
                   ? "lacks the hooks accepts, open, read and close" : NULL;
    }
    case CNR_KIND_METER: {
        const cnr_meter *d = descriptor;
        return LACKS(d, open) || LACKS(d, describe) || LACKS(d, read) || LACKS(d, close)
                   ? "lacks the hooks open, describe, read and close" : NULL;
    }
    case CNR_KIND_KNOB: {
        const cnr_knob *d = descriptor;
        return LACKS(d, open) || LACKS(d, describe) || LACKS(d, step) || LACKS(d, read) ||
                       LACKS(d, set) || LACKS(d, restore) || LACKS(d, close)
                   ? "lacks hooks: open, describe, step, read, set, restore and close" : NULL;
    }
    case CNR_KIND_FORCE_32_: break;
    }
    return NULL;
}

bool cnri_descriptor_is_named(int32_t kind, const void *descriptor) {
    if (!descriptor || size_of(descriptor) < name_offset[kind] + sizeof(char *)) return false;
    const char *name = cnri_item_name(kind, descriptor);
    return name && *name;
}

const char *cnri_item_name(int32_t kind, const void *descriptor) {
    return *(const char *const *)(const void *)((const char *)descriptor + name_offset[kind]);
}

const char *cnri_kind_name(int32_t kind) {
    static const char *const names[] = {
#define X(NAME, value, text, type) [value] = text,
        CNR_KIND_LIST(X)
#undef X
    };
    return kind > 0 && kind < (int32_t)CNRI_COUNT(names) ? names[kind] : NULL;
}
