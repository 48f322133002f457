/* A plugin of qemu's that counts the instructions a program takes:
 *     gcc -shared -fPIC -o count.so count.c && qemu-aarch64 -plugin ./count.so -d plugin PROGRAM
 * Its few declarations stand here because Debian packages no header for them. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
/* Of qemu: fn is called with each new block of code. */
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*fn)(qemu_plugin_id_t, struct qemu_plugin_tb *));
/* Of qemu: instructions of a block. */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
/* Of qemu: adds n to *to whenever the block runs. */
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int add, void *to,
                                              uint64_t n);
/* Of qemu: fn is called at the end. */
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*fn)(qemu_plugin_id_t, void *),
                                    void *arg);
/* Of qemu: prints a text. */
void qemu_plugin_outs(const char *text);
/* Qemu calls it at the start. */
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t count;

/* Counts the instructions of a block. */
static void block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &count, qemu_plugin_tb_n_insns(tb));
}

/* Prints the count. */
static void end(qemu_plugin_id_t id, void *arg) {
    char text[64];
    (void)id;
    (void)arg;
    snprintf(text, sizeof text, "instructions %" PRIu64 "\n", count);
    qemu_plugin_outs(text);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, block);
    qemu_plugin_register_atexit_cb(id, end, NULL);
    return 0;
}
