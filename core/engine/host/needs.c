/* Reads what a library needs of the processor, and its plugin's name, out of its file, before
 * anything of it can run.
 *
 *     ELF header -> section headers -> the one named .cnnrun.needs -> "avx512f fma\0"
 *                                      .cnnrun.name  -> "acme\0"
 *
 * Opening a library runs its constructors, which the compiler may have filled with instructions
 * that this processor lacks; so the answer must come from the bytes alone. The file is hostile. */
#include "host/internal.h"
#include <elf.h>
#include <link.h>
#include <string.h>

#if defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

enum { NEEDS_LIMIT = 4096 };

/* ---- the file ---- */

/* Returns the `bytes` at `offset` if they lie within the file and are aligned; else NULL. */
static const void *piece(const cnri_mapping *m, uint64_t offset, uint64_t bytes, size_t alignment) {
    if (offset > m->bytes || bytes > m->bytes - offset || offset % alignment != 0) return NULL;
    return (const char *)m->at + offset;
}

/* Why a shared library can't run on this machine, from its ELF header; NULL: it can. */
static const char *machine_fault(const unsigned char *ident) {
    const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    const unsigned char order =
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    if (memcmp(ident, ELFMAG, SELFMAG) != 0) return "not a shared library (no ELF header)";
    if (ident[EI_CLASS] != class) return "built for another pointer size";
    if (ident[EI_DATA] != order) return "built for another byte order";
    return NULL;
}

/* Copies the text of a section to `out`, "" if there is none. Returns NULL, or what is wrong with
 * the file. */
static const char *read_section(const cnri_mapping *m, const char *section, char out[NEEDS_LIMIT]) {
    const size_t length = strlen(section) + 1;
    out[0] = 0;
    const ElfW(Ehdr) *head = piece(m, 0, sizeof *head, 1);
    if (!head) return "not a shared library (too short)";
    const char *fault = machine_fault(head->e_ident);
    if (fault) return fault;
    if (head->e_shoff == 0 || head->e_shnum == 0) return NULL;
    if (head->e_shentsize != sizeof(ElfW(Shdr)) || head->e_shstrndx >= head->e_shnum)
        return "malformed (section headers)";
    const ElfW(Shdr) *sections =
        piece(m, head->e_shoff, (uint64_t)head->e_shnum * sizeof *sections, _Alignof(ElfW(Shdr)));
    if (!sections) return "malformed (section headers lie outside the file)";
    const ElfW(Shdr) *strings = &sections[head->e_shstrndx];
    const char *names = piece(m, strings->sh_offset, strings->sh_size, 1);
    if (!names) return "malformed (section names lie outside the file)";
    for (int i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *s = &sections[i];
        if (s->sh_name > strings->sh_size || strings->sh_size - s->sh_name < length ||
            memcmp(names + s->sh_name, section, length) != 0)
            continue;
        const char *text = piece(m, s->sh_offset, s->sh_size, 1);
        if (!text || s->sh_type == SHT_NOBITS) return "malformed (a section lies outside the file)";
        if (s->sh_size >= NEEDS_LIMIT) return "malformed (its needs or its name are too long)";
        /* Several source files of a library may each state needs, each as a text with a NUL. */
        for (uint64_t k = 0; k < s->sh_size; k++) out[k] = text[k] ? text[k] : ' ';
        out[s->sh_size] = 0;
        return NULL;
    }
    return NULL;
}

/* ---- the processor ---- */

#if defined(__aarch64__)
/* A CPU feature and its bit in AT_HWCAP. */
typedef struct feature {
    const char *name;
    unsigned long bit;
} feature;
/* True if the operating system reports the feature in AT_HWCAP. */
static bool hwcap_has(const char *name) {
    static const feature features[] = {{"fp", 1 << 0},        {"asimd", 1 << 1},
                                       {"neon", 1 << 1},      {"aes", 1 << 3},
                                       {"pmull", 1 << 4},     {"sha1", 1 << 5},
                                       {"sha2", 1 << 6},      {"crc32", 1 << 7},
                                       {"atomics", 1 << 8},   {"fphp", 1 << 9},
                                       {"asimdhp", 1 << 10},  {"fp16", 1 << 10},
                                       {"asimdrdm", 1 << 12}, {"asimddp", 1 << 20},
                                       {"dotprod", 1 << 20},  {"sve", 1 << 22},
                                       {"asimdfhm", 1 << 23}};
    static const feature more[] = {{"sve2", 1 << 1}, {"i8mm", 1 << 13}, {"bf16", 1 << 14}};
    for (size_t i = 0; i < CNRI_COUNT(features); i++)
        if (strcmp(name, features[i].name) == 0) return getauxval(AT_HWCAP) & features[i].bit;
    for (size_t i = 0; i < CNRI_COUNT(more); i++)
        if (strcmp(name, more[i].name) == 0) return getauxval(AT_HWCAP2) & more[i].bit;
    return false;
}
#elif defined(__arm__)
/* True if the operating system reports the feature in AT_HWCAP. */
static bool hwcap_has(const char *name) {
    const unsigned long have = getauxval(AT_HWCAP);
    if (strcmp(name, "neon") == 0) return have & 1 << 12;
    if (strcmp(name, "vfpv4") == 0) return have & 1 << 16;
    return false;
}
#else
/* Always false: no AT_HWCAP is known on this processor. */
static bool hwcap_has(const char *name) {
    (void)name;
    return false;
}
#endif

/* True if `word` occurs in `text` as a whole word. */
static bool holds_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n)
        if ((at == text || strchr(" \t:", at[-1])) && strchr(" \t\n", at[n])) return true;
    return false;
}

/* True if the kernel reports the feature: the processor has it, and the system saves its
 * registers (CPUID with XGETBV on x86, HWCAP on Arm). The first processor stands for all. */
static bool kernel_lists(const char *name) {
    char line[8192];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return false;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
        found = holds_word(line, name);
        break;
    }
    fclose(file);
    return found;
}

char *cnri_needs_unmet(const char *path, bool *failed) {
    char needs[NEEDS_LIMIT], *rest = NULL, *why = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnri_mapping file;
    const char *fault = cnri_map_file(path, &file, &err) == CNR_OK
                            ? read_section(&file, ".cnnrun.needs", needs)
                            : err.text;
    if (fault) {
        why = cnri_strdup(fault);
        *failed = !why;
        cnri_unmap_file(&file);
        return why;
    }
    cnri_unmap_file(&file);
    for (char *word = strtok_r(needs, " ,", &rest); word; word = strtok_r(NULL, " ,", &rest)) {
        if (hwcap_has(word) || kernel_lists(word)) continue;
        why = cnri_format("needs the processor feature %s, which this machine lacks", word);
        *failed = !why;
        break;
    }
    return why;
}

char *cnri_needs_name(const char *path) {
    char name[NEEDS_LIMIT] = "";
    cnri_mapping file;
    if (cnri_map_file(path, &file, NULL) != CNR_OK) return NULL;
    const char *fault = read_section(&file, ".cnnrun.name", name);
    cnri_unmap_file(&file);
    name[strcspn(name, " ")] = 0;
    return fault || !*name ? NULL : cnri_strdup(name);
}
