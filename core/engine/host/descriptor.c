/* Checks every descriptor that a plugin registers before anything relies on it. */
#include "host/internal.h"
#include <string.h>

/* Offset of the name in the descriptor of each kind. */
static const uint32_t name_offset[] = {
/* Offset of the member `name` in the descriptor of one kind. */
#define X(NAME, value, text, type) [value] = (uint32_t)offsetof(type, name),
    CNR_KIND_LIST(X)
#undef X
};

/* Largest struct size that is accepted. Newer plugins may have longer structs (CNR_ABI_WANTED). */
enum { MAX_DESCRIPTOR = 1 << 16 };

/* The size of a descriptor, which is its first field. */
static uint32_t size_of(const void *descriptor) { return *(const uint32_t *)descriptor; }

/* True if `field` of a descriptor is missing or not set. */
#define LACKS(d, field) (!CNRI_HAS(d, field))

/* Most entries of any table; more means a table without its end, or a wrong length. */
enum { MAX_ATTRS = 256, MAX_PORTS = 128, MAX_ROW = 4096, MAX_NAMES = 4096, MAX_NAME = 255 };

/* True if rows of so many bytes can be read: shorter than this version's (older plugin) or longer
 * (newer), but at least `minimum` and aligned. */
static bool row_fits(uint32_t bytes, size_t minimum) {
    return bytes >= minimum && bytes <= MAX_ROW && bytes % _Alignof(void *) == 0;
}

/* True for a name that is not empty and at most MAX_NAME bytes long. */
static bool named(const char *name) {
    return name && *name && strnlen(name, MAX_NAME + 1) <= MAX_NAME;
}

/* Length of a list that ends with NULL; -1: too long. */
static int32_t list_length(const char *const *list) {
    int32_t n = 0;
    while (n <= MAX_NAMES && list[n]) n++;
    return n <= MAX_NAMES ? n : -1;
}

/* What is wrong with attribute rows of a descriptor; NULL: nothing. So do all fault_of_... */
static const char *fault_of_schema(int32_t n, const void *rows, uint32_t row_size) {
    if (n < 0 || (n > 0 && !rows)) return "has no attribute rows";
    if (n > MAX_ATTRS) return "has more than 256 attributes";
    if (n > 0 && row_size < offsetof(cnr_attr_spec, min))
        return "has attribute rows that are too short";
    if (n > 0 && !row_fits(row_size, offsetof(cnr_attr_spec, min)))
        return "has attribute rows of no possible size";
    for (int32_t i = 0; i < n; i++) {
        cnr_attr_spec row_buffer;
        const cnr_attr_spec *row = cnri_spec_at(rows, row_size, i, &row_buffer);
        if (!row->name || !*row->name) return "has an attribute without a name";
        if (!named(row->name)) return "has an attribute whose name has no end";
        if (row->type < CNR_ATTR_INT || row->type > CNR_ATTR_DTYPE)
            return "has an attribute of an unknown type";
        if (row->type == CNR_ATTR_ENUM && (!row->choices || !row->choices[0]))
            return "has an attribute without choices";
        if (row->type == CNR_ATTR_ENUM && list_length(row->choices) < 0)
            return "has an attribute whose choices have no end";
    }
    return NULL;
}

/* What is wrong with rows of ports; NULL: nothing. */
static const char *fault_of_ports(const cnr_port *rows, int32_t n, uint32_t row_size) {
    for (int32_t i = 0; i < n; i++) {
        const cnr_port *row = (const void *)((const char *)rows + (size_t)row_size * (size_t)i);
        if (!named(row->name)) return "has a port without a name";
        if (row->min < 0 || row->min > MAX_PORTS) return "has a port with an impossible minimum";
        if (row->flags & CNR_PORT_VARIADIC && i != n - 1)
            return "has a variadic port that is not the last";
    }
    return NULL;
}

/* What is wrong with an operator's descriptor; NULL: nothing. */
static const char *fault_of_op(const cnr_op *op) {
    if (LACKS(op, infer)) return "lacks the hook infer";
    if (LACKS(op, reference)) return "lacks the hook reference";
    if (op->n_inputs < 0 || (op->n_inputs > 0 && !op->inputs)) return "has no input rows";
    if (op->n_outputs < 1 || !op->outputs) return "has no output rows";
    if (op->n_inputs > MAX_PORTS || op->n_outputs > MAX_PORTS) return "has more than 128 ports";
    if (op->port_size < offsetof(cnr_port, help)) return "has port rows that are too short";
    if (!row_fits(op->port_size, offsetof(cnr_port, help)))
        return "has port rows of no possible size";
    const char *fault = fault_of_ports(op->inputs, op->n_inputs, op->port_size);
    if (!fault) fault = fault_of_ports(op->outputs, op->n_outputs, op->port_size);
    if (fault) return fault;
    if (CNRI_HAS(op, aliases) && list_length(op->aliases) < 0) return "has aliases without end";
    if (CNRI_HAS(op, input_range) && !CNRI_HAS(op, split_axes) && !(op->flags & CNR_OP_ELEMENTWISE))
        return "has the hook input_range but not split_axes";
    return fault_of_schema(op->n_attrs, op->attrs, op->attr_spec_size);
}

/* What is wrong with a kernel's descriptor; NULL: nothing. */
static const char *fault_of_kernel(const cnr_kernel *kernel) {
    if (LACKS(kernel, op) || LACKS(kernel, device)) return "names no operator or no device";
    if (LACKS(kernel, accepts)) return "lacks the hook accepts";
    if (LACKS(kernel, run)) return "lacks the hook run";
    if (CNRI_HAS(kernel, encodings) && list_length(kernel->encodings) < 0)
        return "has encodings without end";
    if ((kernel->prepare != NULL) != (kernel->prepare_size != NULL))
        return "has only one of the hooks prepare and prepare_size";
    return NULL;
}

/* What is wrong with a device class; NULL: nothing. */
static const char *fault_of_device(const cnr_device_class *cls) {
    if (LACKS(cls, family) || !*cls->family) return "has no family";
    if (LACKS(cls, count) || LACKS(cls, describe)) return "lacks the hooks count and describe";
    if (LACKS(cls, open) || LACKS(cls, close)) return "lacks the hooks open and close";
    if (LACKS(cls, alloc) || LACKS(cls, free)) return "lacks the hooks alloc and free";
    if (LACKS(cls, write) || LACKS(cls, read)) return "lacks the hooks write and read";
    if (LACKS(cls, stream_open) || LACKS(cls, stream_close) || LACKS(cls, sync))
        return "lacks the hooks of streams";
    const int events =
        !LACKS(cls, event_record) + !LACKS(cls, event_wait) + !LACKS(cls, event_free);
    if (events != 0 && events != 3)
        return "has only some of the hooks event_record, event_wait and event_free";
    if (!LACKS(cls, event_elapsed) && events == 0)
        return "has the hook event_elapsed but not event_record";
    return NULL;
}

/* What is wrong with an encoding's descriptor; NULL: nothing. */
static const char *fault_of_encoding(const cnr_encoding *encoding) {
    if (LACKS(encoding, encode_size) || LACKS(encoding, encode))
        return "lacks the hooks encode_size and encode";
    if (LACKS(encoding, check) || LACKS(encoding, decode))
        return "lacks the hooks check and decode";
    return fault_of_schema(encoding->n_attrs, encoding->attrs, encoding->attr_spec_size);
}

/* What is wrong with an object's descriptor; NULL: nothing. */
static const char *fault_of_object(const cnr_object *object) {
    if (object->n_methods < 0 || (object->n_methods > 0 && LACKS(object, methods)))
        return "has no method names";
    if (object->n_methods > MAX_NAMES) return "has more than 4096 methods";
    for (int32_t i = 0; i < object->n_methods; i++)
        if (!object->methods[i] || !*object->methods[i]) return "has a method without a name";
    if (LACKS(object, create) || LACKS(object, call) || LACKS(object, destroy))
        return "lacks the hooks create, call and destroy";
    return NULL;
}

const char *cnri_descriptor_fault(int32_t kind, const void *descriptor) {
    if (size_of(descriptor) > MAX_DESCRIPTOR) return "has a size of more than 65536 bytes";
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
        if (LACKS(d, accepts) || LACKS(d, open) || LACKS(d, read) || LACKS(d, close))
            return "lacks the hooks accepts, open, read and close";
        const int writes = !LACKS(d, write_open) + !LACKS(d, write_next) + !LACKS(d, write_close);
        return writes == 0 || writes == 3
                   ? NULL
                   : "has only some of the hooks write_open, write_next and write_close";
    }
    case CNR_KIND_IMPORT_ROW: {
        const cnr_import_row *d = descriptor;
        if (LACKS(d, format) || LACKS(d, type)) return "names no format or no type";
        if (CNRI_HAS(d, attrs) && list_length(d->attrs) < 0) return "has attributes without end";
        return LACKS(d, op) && LACKS(d, import) ? "has neither an operator nor the hook import"
                                                : NULL;
    }
    case CNR_KIND_CLOCK: {
        const cnr_clock *d = descriptor;
        return LACKS(d, now_ns) || LACKS(d, wait_until) ? "lacks the hooks now_ns and wait_until"
                                                        : NULL;
    }
    case CNR_KIND_METER: {
        const cnr_meter *d = descriptor;
        return LACKS(d, open) || LACKS(d, describe) || LACKS(d, read) || LACKS(d, close)
                   ? "lacks the hooks open, describe, read and close"
                   : NULL;
    }
    case CNR_KIND_KNOB: {
        const cnr_knob *d = descriptor;
        return LACKS(d, open) || LACKS(d, describe) || LACKS(d, read) || LACKS(d, set) ||
                       LACKS(d, restore) || LACKS(d, close)
                   ? "lacks hooks: open, describe, read, set, restore and close"
                   : NULL;
    }
    case CNR_KIND_GROUP: {
        const cnr_group *d = descriptor;
        return LACKS(d, launched) || LACKS(d, open) || LACKS(d, sum_begin) || LACKS(d, sum_wait) ||
                       LACKS(d, broadcast) || LACKS(d, barrier) || LACKS(d, abort) ||
                       LACKS(d, close) || LACKS(d, sum_begin_op) || LACKS(d, sum_wait_op)
                   ? "lacks hooks, or the names of its operators"
                   : NULL;
    }
    case CNR_KIND_CODEC: {
        const cnr_codec *d = descriptor;
        return LACKS(d, bound) || LACKS(d, encode) || LACKS(d, decode)
                   ? "lacks the hooks bound, encode and decode"
                   : NULL;
    }
    }
    return NULL;
}

bool cnri_descriptor_is_named(int32_t kind, const void *descriptor) {
    if (!descriptor || size_of(descriptor) < name_offset[kind] + sizeof(char *)) return false;
    return named(cnri_item_name(kind, descriptor));
}

const char *cnri_item_name(int32_t kind, const void *descriptor) {
    return *(const char *const *)(const void *)((const char *)descriptor + name_offset[kind]);
}

const char *cnri_kind_name(int32_t kind) {
    static const char *const names[] = {
/* Name of one kind. */
#define X(NAME, value, text, type) [value] = text,
        CNR_KIND_LIST(X)
#undef X
    };
    return kind > 0 && kind < (int32_t)CNRI_COUNT(names) ? names[kind] : NULL;
}
