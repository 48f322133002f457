/* The load options: one row each. Members of cnr_load_options, the program's options, the keys of
 * c.load, what plans and cache keys take of them are made of these rows.
 *
 *     X(who, kind, member, key, option, argument, choices, enters, usual, help)
 *
 * who      has it besides C: ALL, PROGRAM or SCRIPT. (A script that could write a cache would
 *          choose what kernels read as prepared weights, so only trusted ones have `cache`.)
 * kind     TEXT; FILE, a text; FLAG; NOT, a flag whose key says the opposite; BYTES; LIST of texts;
 *          COMMAS, a list that the program has in one word; SETTINGS, a list of "name=value", for
 *          scripts a table; SIZES, the symbols
 * choices  all that a TEXT may be
 * enters   PLAN: the identity of plans; PASSES: not that, but planning has it. Of these,
 *          cnri_plan_options has the member, too. STORES: as PLAN, by its `stores`. NET and POLICY:
 *          what comes of it has a digest. NOTHING: no key
 * usual    what holds without it, or "(repeatable)", behind the help */
#ifndef CNRI_LOAD_OPTIONS_H
#define CNRI_LOAD_OPTIONS_H

/* The table of load options: X(who, kind, member, key, option, argument, choices, where, default,
 * help) for each. */
#define CNRI_LOAD_OPTIONS(X) \
    X(ALL, TEXT, device, "device", "--device", "NAME", NULL, PLAN, " (the best)", \
      "where to run: cpu, cpu:little, opencl:0 ...") \
    X(ALL, FILE, weights, "weights", "--weights", "FILE,..", NULL, NET, " (the net's own)", \
      "weights from files (.cnr, .npz ...), random:SEED, or none (to look at)") \
    X(ALL, TEXT, weights_type, "weights_type", "--weights-type", "TYPE", cnri_weights_types, \
      STORES, " (f32)", \
      "kernels that can store weights so, and multiply in f32, take what they can") \
    X(ALL, TEXT, arithmetic, "arithmetic", "--arithmetic", "TYPE", cnri_arithmetics, STORES, \
      " (f32)", "kernels that can multiply so take what they can, where the device does, too") \
    X(ALL, FILE, labels, "labels", "--labels", "FILE", NULL, NOTHING, " (the net's own)", \
      "names of the classes, one a line") \
    X(ALL, TEXT, net, "net", "--net", "NAME", NULL, NET, " (the only one)", \
      "which net of a script that holds several") \
    X(ALL, LIST, import_options, "import", "--option", "NAME=VALUE", NULL, NET, " (repeatable)", \
      "a setting of the importer") \
    X(ALL, SIZES, symbols, "sizes", "--symbol", "NAME=VALUE", NULL, NET, " (repeatable)", \
      "bind a named dimension") \
    X(ALL, LIST, symbol_ranges, "ranges", "--range", "NAME=A..B", NULL, NOTHING, " (repeatable)", \
      "sizes that a named dimension may have in any plan: kernels and regions see them") \
    X(ALL, LIST, no_rewrite, "no_rewrite", "--no-rewrite", "NAME", NULL, PLAN, " (repeatable)", \
      "leave a rewrite out") \
    X(ALL, LIST, kernels, "kernels", "--kernel", "NODE=NAME", NULL, PLAN, " (repeatable)", \
      "have this kernel run a node, or all of an operator; NODE@DEVICE: there alone") \
    X(ALL, FILE, policy, "policy", "--policy", "FILE", NULL, POLICY, " (the net's own)", \
      "have a file of Lua pick among the net's candidates: kernels, devices, shares") \
    X(ALL, SETTINGS, policy_options, "policy_options", "--policy-option", "NAME=VALUE", NULL, \
      POLICY, " (repeatable)", "a setting of the policy") \
    X(ALL, COMMAS, devices, "devices", "--devices", "A,B", NULL, PLAN, " (as the net says)", \
      "make candidates for these devices; the first runs what nobody places") \
    X(ALL, COMMAS, fallback, "fallback", "--fallback", "A,B", NULL, PASSES, " (an error)", \
      "where a device fails, go on on the next of these, and say so") \
    X(ALL, BYTES, memory_bound, "memory_bound", "--memory", "BYTES", NULL, PLAN, " (no bound)", \
      "most bytes of weights, as they are and prepared, and of values between steps") \
    X(ALL, BYTES, memory_limit, "memory_limit", "--memory-limit", "BYTES", NULL, PASSES, \
      " (3/4 of what there is)", "most bytes of activations, inputs and outputs; more is refused") \
    X(ALL, BYTES, hang_ms, "hang_ms", "--hang-ms", "N", NULL, PASSES, \
      " (100 times the estimate, at least 10000)", \
      "give a device up that is not the CPU when one call takes longer than so many milliseconds") \
    X(PROGRAM, TEXT, cache, "", "--cache", "DIR", NULL, NOTHING, \
      " (CNNRUN_CACHE; ~/.cache/cnnrun for what takes long)", \
      "keep plans and prepared weights here for the next time") \
    X(ALL, FLAG, no_cache, "no_cache", "--no-cache", NULL, NULL, NOTHING, "", \
      "keep nothing for the next time, and use nothing that was kept") \
    X(ALL, TEXT, cache_codec, "cache_codec", "--cache-codec", "NAME,..", NULL, NOTHING, " (none)", \
      "compress or encrypt what is kept, by codecs that cnnrun plugins lists") \
    X(ALL, FILE, cache_key_file, "cache_key_file", "--cache-key-file", "FILE", NULL, NOTHING, \
      " (CNNRUN_CACHE_KEY)", "the key of a codec that encrypts") \
    X(ALL, BYTES, cache_bytes, "cache_limit", "--cache-limit", "BYTES", NULL, NOTHING, " (4G)", \
      "most bytes that they may take; the oldest go first") \
    X(ALL, TEXT, cache_policy, "cache_policy", "--cache-policy", "NAME", cnri_cache_policies, \
      NOTHING, " (lru)", "which go first: lru, used longest ago; fifo, kept longest ago") \
    X(ALL, FLAG, deterministic, "deterministic", "--deterministic", NULL, NULL, PLAN, "", \
      "never let a clock choose") \
    X(ALL, FLAG, adapt, "adapt", "--adapt", NULL, NULL, NOTHING, "", \
      "try kernels, then devices, in the first runs; keep what is best with --cache") \
    X(ALL, NOT, no_verify, "verify", "--no-verify", NULL, NULL, NOTHING, "", \
      "believe the weights of a .cnr: their digests are not compared") \
    X(SCRIPT, TEXT, preset, "preset", "", NULL, NULL, NOTHING, " (the net's own)", \
      "how pictures are prepared: torchvision, tf ...")

/* Lists of choices; each ends in NULL. */
extern const char *const cnri_weights_types[], *const cnri_arithmetics[],
                                                   *const cnri_cache_policies[];

/* Type of a load option's value: text, flag, bytes or list; column `kind` above explains each. */
typedef enum cnri_load_kind {
    CNRI_LOAD_TEXT,
    CNRI_LOAD_FILE,
    CNRI_LOAD_FLAG,
    CNRI_LOAD_NOT,
    CNRI_LOAD_BYTES,
    CNRI_LOAD_LIST, /* this kind and the following ones are lists */
    CNRI_LOAD_COMMAS,
    CNRI_LOAD_SETTINGS,
    CNRI_LOAD_SIZES
} cnri_load_kind;

/* What a load option changes, and so which identity it is part of. */
typedef enum cnri_load_enters {
    CNRI_ENTERS_NOTHING,
    CNRI_ENTERS_NET,
    CNRI_ENTERS_POLICY,
    CNRI_ENTERS_STORES,
    CNRI_ENTERS_PASSES, /* options of this kind and the following are in cnri_plan_options */
    CNRI_ENTERS_PLAN
} cnri_load_enters;

/* A load option: its names, kind, choices, and where it is stored. */
typedef struct cnri_load_option {
    /* In C, in scripts and in the program; "": not available there. */
    const char *name, *key, *option;
    cnri_load_kind kind;
    cnri_load_enters enters;
    const char *const *choices; /* NULL: any value */
    size_t at, plan_at; /* offsets in cnr_load_options, and in cnri_plan_options if it is there */
} cnri_load_option;

/* Number of an option in the table: CNRI_LOAD_ and its member's name. */
#define CNRI_LOAD_ROW(who, kind, member, ...) CNRI_LOAD_##member,
enum { CNRI_LOAD_OPTIONS(CNRI_LOAD_ROW) CNRI_N_LOAD_OPTIONS };
#undef CNRI_LOAD_ROW
extern const cnri_load_option cnri_load_options[CNRI_N_LOAD_OPTIONS];

/* Index of the choice, 0 for NULL; -1: it is none of them. */
int32_t cnri_choice(const char *const *choices, const char *text);
/* Checks that every option with choices has one of them. */
cnr_status cnri_load_check(const cnr_load_options *o, cnr_error *err);
/* Copies the options that planning uses; the caller keeps lists and texts. */
void cnri_load_take(const cnr_load_options *from, cnri_plan_options *to);
/* Replaces lists and texts by copies, which cnri_load_drop frees, after a failure too. False: it
 * failed. */
bool cnri_load_own(cnri_plan_options *o);
/* Frees the texts and lists that cnri_load_own copied; leaves the pointers as they are. */
void cnri_load_drop(cnri_plan_options *o);
/* Appends " name=value" for each option that is set and that enters that key. */
void cnri_load_enter(const cnri_plan_options *o, cnri_load_enters where, cnri_text *out);

/* Fills options that `o` leaves open from the net's metadata: lists from "plan.NAME" with one
 * word on each line, and "plan.stores". Free held[] once they were copied. (cnri_plan_defaults
 * reads texts, numbers and flags.) False: out of memory. */
bool cnri_load_defaults(const cnr_graph *g, cnri_plan_options *o, void *held[CNRI_N_LOAD_OPTIONS]);

#endif
