/* The registry: staging, refusals, lookup by name and alias, kernels by operator, many readers. */
#include "host/internal.h"
#include "tests/tap.h"
#include <pthread.h>
#include <stdatomic.h>

/* Method infer: not called, does nothing and returns CNR_OK. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    (void)node, (void)outputs, (void)err;
    return CNR_OK;
}
/* Method reference: not called, does nothing and returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    (void)run, (void)err;
    return CNR_OK;
}
/* Method accepts: does nothing and returns CNR_OK. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device, (void)node, (void)out;
    return CNR_OK;
}

static const cnr_port ports[] = {{"x", 0, 0, NULL}};
static const char *const aliases[] = {"second_name", "third_name", NULL};
/* An operator of this name. */
#define OP(var, text, ...) \
    static const cnr_op var = {.size = sizeof(cnr_op), \
                               .name = text, \
                               .port_size = sizeof(cnr_port), \
                               .n_inputs = 1, \
                               .n_outputs = 1, \
                               .inputs = ports, \
                               .outputs = ports, \
                               .infer = infer, \
                               .reference = reference, \
                               __VA_ARGS__}
/* A kernel of this name and operator. */
#define KERNEL(var, text, of) \
    static const cnr_kernel var = {.size = sizeof(cnr_kernel), \
                                   .name = text, \
                                   .op = of, \
                                   .device = "any", \
                                   .accepts = accepts, \
                                   .run = reference}

OP(first, "first", .aliases = aliases);
OP(second, "second", .version = 1);
OP(clash, "second_name", .version = 1);
OP(no_name, NULL, .version = 1);
KERNEL(k1, "k1", "second");
KERNEL(k2, "k2", "first");
KERNEL(k3, "k3", "second");
KERNEL(k4, "k4", "nobody");
KERNEL(lost, "lost", "second_name");
KERNEL(any1, "any1", CNR_ANY_OP);
KERNEL(any2, "any2", CNR_ANY_OP);

static cnri_plugin one = {.name = (char *)"one"}, two = {.name = (char *)"two"};

/* Items are staged, and found once they are committed. */
static void test_adding(void) {
    struct cnr_registrar r = {.plugin = &one, .open = true};
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &first), CNR_OK, "an operator is staged");
    ok(cnri_op_find("first") == NULL && cnri_descriptor_count(CNR_KIND_OPERATOR) == 0,
       "and not there yet");
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &first), CNR_E_ARG, "not twice");
    has_text(r.fault, "operator \"first\" is refused: plugin one has one", "as it says");
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &clash), CNR_E_ARG, "nor by another's alias");
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &no_name), CNR_E_ARG, "nor without a name");
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, NULL), CNR_E_ARG, "nor nothing");
    is_int(cnri_registrar_add(&r, 77, &first), CNR_E_UNSUPPORTED, "nor an unknown kind");
    has_text(r.fault, "no kind 77", "as it says");
    is_int(cnri_registrar_add(&r, CNR_KIND_KERNEL, &k1), CNR_OK, "kernels");
    is_int(cnri_registrar_add(&r, CNR_KIND_KERNEL, &k2), CNR_OK, "more kernels");
    cnri_alloc_fail_at(1);
    is_int(cnri_registry_commit(&r), CNR_E_MEMORY, "without memory nothing is committed");
    cnri_alloc_fail_at(0);
    ok(cnri_op_find("first") == NULL, "nothing at all");
    is_int(cnri_registry_commit(&r), CNR_OK, "with memory all is");
    r.open = false;
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &second), CNR_E_STATE, "init is over");
    cnri_registrar_free(&r);
}

/* What a second plugin brings under names in use is left out, and it goes on. */
static void test_second_plugin(void) {
    struct cnr_registrar r = {.plugin = &two, .open = true};
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &lost);
    is_int(cnri_registrar_add(&r, CNR_KIND_OPERATOR, &clash), CNR_OK,
           "an alias of a registered operator is taken, and the plugin goes on");
    ok(r.collisions.n == 1 && r.collisions.at[0].holder == &one, "the first plugin has it");
    ok(cnri_registrar_settle(&r) == CNR_OK && r.staged.n == 0 && r.collisions.n == 2,
       "a kernel for the operator that was left out is left out, too");
    ok(strcmp(r.collisions.at[1].op, "second_name") == 0, "as one of it");
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &second);
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &k3);
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &k4);
    is_int(cnri_registry_commit(&r), CNR_OK, "a second plugin");
    cnri_registrar_free(&r);
}

/* Descriptors with faults are refused. */
static void test_faults(void) {
    struct cnr_registrar r = {.plugin = &two, .open = true};
    cnr_op op = second;
    cnr_kernel kernel = k1;
    op.name = kernel.name = "faulty";
    op.infer = NULL;
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "operator \"faulty\" is refused: it lacks the hook infer", "a hook left out");
    op = second;
    op.name = "faulty";
    op.size = offsetof(cnr_op, reference);
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "lacks the hook reference", "a hook beyond the struct's size");
    op.size = 4;
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "operator without a name", "a struct without room for a name");
    op.size = sizeof op;
    op.n_attrs = 1;
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "has no attribute rows", "rows promised and not given");
    const cnr_attr_spec row = {.name = "a", .type = 99};
    op.attrs = &row;
    op.attr_spec_size = sizeof row;
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "attribute of an unknown type", "a type nobody knows");
    const cnr_attr_spec choice = {.name = "a", .type = CNR_ATTR_ENUM};
    op.attrs = &choice;
    cnri_registrar_add(&r, CNR_KIND_OPERATOR, &op);
    has_text(r.fault, "attribute without choices", "a choice between nothing");
    kernel.run = NULL;
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &kernel);
    has_text(r.fault, "lacks the hook run", "a kernel that does not run");
    static const uint32_t sizes[] = {
/* Size of the descriptor of a kind. */
#define X(NAME, value, text, type) [value] = sizeof(type),
        CNR_KIND_LIST(X)
#undef X
    };
    for (int32_t kind = 1; cnri_kind_name(kind); kind++) {
        static struct {
            uint32_t size, other;
            const char *name[2];
            void *hooks[60];
        } empty = {0, 0, {"empty", "empty"}, {0}};
        empty.size = sizes[kind];
        /* with pointers of 32 bits the name follows the size, but for objects */
        const bool follows = sizeof(void *) == 4 && kind != CNR_KIND_OBJECT;
        empty.other = follows ? (uint32_t)(uintptr_t)empty.name[0] : 0;
        r.fault[0] = 0;
        cnr_status status = cnri_registrar_add(&r, kind, &empty);
        ok(status == CNR_E_ARG && (strstr(r.fault, "lacks") || strstr(r.fault, "names no")),
           "kind %s: nothing but a name is not enough", cnri_kind_name(kind));
        empty.size = 1 << 20;
        status = cnri_registrar_add(&r, kind, &empty);
        ok(status == CNR_E_ARG && strstr(r.fault, "has a size of more"), "and none is that large");
    }
    ok(r.staged.n == 0, "none of them is staged");
    cnri_registrar_free(&r);
}

/* Descriptors and kernels are found by name, alias and order. */
static void test_looking_up(void) {
    const cnr_kernel *const *kernels;
    ok(cnri_op_find("first") == &first && cnri_op_find("second_name") == &first &&
           cnri_op_find("third_name") == &first,
       "by name and by alias");
    ok(cnri_op_find("fourth") == NULL && cnri_descriptor_find(CNR_KIND_KERNEL, "first") == NULL,
       "kinds are apart");
    ok(cnri_descriptor_find(99, "first") == NULL && cnri_descriptor_count(99) == 0 &&
           cnri_descriptor_at(0, 0) == NULL,
       "no kind");
    ok(cnri_descriptor_count(CNR_KIND_OPERATOR) == 2 &&
           cnri_descriptor_at(CNR_KIND_OPERATOR, 0) == &first &&
           cnri_descriptor_at(CNR_KIND_OPERATOR, 1) == &second &&
           cnri_descriptor_at(CNR_KIND_OPERATOR, 2) == NULL &&
           cnri_descriptor_at(CNR_KIND_OPERATOR, -1) == NULL,
       "in order of registration");
    ok(cnri_kernels_for(&second, &kernels) == 2 && kernels[0] == &k1 && kernels[1] == &k3,
       "kernels of an operator, from both plugins, in order");
    ok(cnri_kernels_for(&first, &kernels) == 1 && kernels[0] == &k2, "and of another");
    ok(cnri_kernels_for(&clash, &kernels) == 0 && kernels == NULL, "and none");
    ok(cnri_owner(&k3) == &two && cnri_owner(&first) == &one && cnri_owner(&clash) == NULL,
       "who brought it");
}

static atomic_int stop;
/* Thread: reads the registry until it is told to stop. */
static void *reader(void *bad) {
    const cnr_kernel *const *kernels;
    while (!atomic_load(&stop)) {
        const int32_t n = cnri_descriptor_count(CNR_KIND_OPERATOR);
        if (n < 2 || cnri_descriptor_at(CNR_KIND_OPERATOR, n - 1) == NULL) *(int *)bad = 1;
        if (cnri_kernels_for(&second, &kernels) != 2 || kernels[1] != &k3) *(int *)bad = 1;
        if (cnri_op_find("third_name") != &first) *(int *)bad = 1;
    }
    return NULL;
}

/* Readers find whole lists while items are added. */
static void test_threads(void) {
    static cnr_op many[50];
    static char names[50][16];
    int bad[3] = {0};
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], NULL, reader, &bad[t]);
    for (int i = 0; i < 50; i++) {
        struct cnr_registrar r = {.plugin = &two, .open = true};
        snprintf(names[i], sizeof names[i], "many_%d", i);
        many[i] = second;
        many[i].name = names[i];
        cnri_registrar_add(&r, CNR_KIND_OPERATOR, &many[i]);
        cnri_registry_commit(&r);
        cnri_registrar_free(&r);
    }
    atomic_store(&stop, 1);
    for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
    ok(!bad[0] && !bad[1] && !bad[2], "readers see whole registries while plugins come");
    is_int(cnri_descriptor_count(CNR_KIND_OPERATOR), 52, "and all came");
}

/* The host's table is complete. */
static void test_table(void) {
    int all = cnri_host.size == sizeof(cnr_host) && cnri_host.abi == CNR_ABI;
    all = all && cnri_host.add && cnri_host.intern && cnri_host.name_of && cnri_host.alloc;
    all = all && cnri_host.resize && cnri_host.free && cnri_host.fail && cnri_host.log;
    all = all && cnri_host.now_ns && cnri_host.sha256 && cnri_host.find_op;
    ok(all, "the host table holds this room's slots");
    ok(cnri_host.find_op("second_name") == &first, "operators are found through it");
    cnr_error err = CNR_ERROR_INIT;
    is_int(cnri_host.fail(&err, CNR_E_IO, "here", "%d", 5), CNR_E_IO, "errors are filled by it");
    is_text(err.text, "5", "with their text");
}

/* Kernels for any operator come behind those of an operator. */
static void test_any(void) {
    const cnr_kernel *const *kernels;
    struct cnr_registrar r = {.plugin = &one, .open = true};
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &any1);
    cnri_registrar_add(&r, CNR_KIND_KERNEL, &any2);
    is_int(cnri_registry_commit(&r), CNR_OK, "kernels for any operator are committed");
    cnri_registrar_free(&r);
    ok(cnri_kernels_for(&second, &kernels) == 4 && kernels[0] == &k1 && kernels[1] == &k3 &&
           kernels[2] == &any1 && kernels[3] == &any2,
       "they come after an operator's own");
    ok(cnri_kernels_for(&clash, &kernels) == 2 && kernels[0] == &any1, "or alone");
    ok(cnri_descriptor_count(CNR_KIND_KERNEL) >= 5, "and are counted once");
}

int main(void) {
    test_adding();
    test_second_plugin();
    test_faults();
    test_looking_up();
    test_threads();
    test_table();
    test_any();
    return done();
}
