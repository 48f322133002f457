/* Prints rows of operator schemas for help: defaults and bounds of attributes, and ports. */
#include "show/show.h"
#include <string.h>

/* Appends the default of an attribute to the text (a spatial list: its fill); nothing if it has
 * none. */
void cnri_attr_print_default(const cnr_attr_spec *row, cnri_text *out) {
    cnr_attr value = {.type = row->type,
                      .i = row->default_i,
                      .f = row->default_f,
                      .s = row->default_s};
    if (row->flags & CNR_ATTR_REQUIRED) return;
    if (row->type == CNR_ATTR_DTYPE && row->default_i == CNR_DTYPE_NONE) return;
    if (row->flags & (CNR_ATTR_SPATIAL | CNR_ATTR_SPATIAL_PAIRS))
        cnri_text_add(out, "%lld", (long long)row->fill);
    else cnri_attr_print(&value, out);
}

void cnri_attr_print_bounds(const cnr_attr_spec *row, cnri_text *out) {
    char low[40], high[40];
    if (!(row->flags & CNR_ATTR_BOUNDED)) return;
    cnri_print_double(low, sizeof low, row->min);
    cnri_print_double(high, sizeof high, row->max);
    if (row->max >= 9e15) cnri_text_add(out, ", >= %s", low);
    else if (row->min <= -9e15) cnri_text_add(out, ", <= %s", high);
    else cnri_text_add(out, ", %s to %s", low, high);
}

cnr_port cnri_port_at(const cnr_op *op, const cnr_port *rows, int32_t i) {
    cnr_port port = {0};
    const size_t row = op->port_size;
    memcpy(&port, (const char *)rows + row * (size_t)i, row < sizeof port ? row : sizeof port);
    return port;
}
