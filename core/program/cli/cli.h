/* cli: the subcommands of the program cnnrun.
 *
 * A subcommand is a file cmd_NAME.c with a descriptor `cnri_cmd_NAME`, as front/front.h has it, and
 * one row in CNRI_COMMANDS. */
#ifndef CNRI_CLI_H
#define CNRI_CLI_H

#include "front/front.h"
#include "work/work.h"

/* One row for each subcommand, in the order of the help: name, and one line of help. */
#define CNRI_COMMANDS(X) \
    X(run, "what a net says of pictures (the word run may be left out)") \
    X(train, "train a net on labelled pictures") \
    X(eval, "how often a net is right on labelled pictures") \
    X(bench, "time and memory of a net") \
    X(compile, "write a net, its plan and its prepared weights to one file") \
    X(warm, "plan a net and prepare its weights now, for quick starts later") \
    X(sweep, "run a study at many points, with several seeds each") \
    X(place, "measure a net on each device and have a policy share it among them") \
    X(cache, "list, verify, clear, move what is kept between runs") \
    X(tune, "time the kernels of a net's layers and keep the record for planning") \
    X(show, "a net node by node, before anything runs") \
    X(import, "a model of another program to the native file") \
    X(convert, "any net to the native file, weights encoded if asked") \
    X(quantize, "have a net work on 8-bit whole numbers") \
    X(prune, "cut a net's weights by a schedule, and train on in between") \
    X(check, "verify the digests of native model files") \
    X(plugins, "list plugins with what they provide, or why they were refused") \
    X(devices, "what can run nets here, and how fast it is at its best") \
    X(boards, "what a board file may hold; checks boards") \
    X(gauges, "meters and knobs of this machine, and what they read now") \
    X(govern, "set frequencies by a policy: live, on a recording, on a played board") \
    X(helper, "as root: readings and settings for the members of a group") \
    X(energy, "what the machine draws: domains, a log, curves, what a command takes") \
    X(ops, "list operators, their inputs, attributes and help") \
    X(lua, "what scripts can say, function by function; type files for editors") \
    X(export, "write a net in another format") \
    X(verify, "run models on given inputs, compare with given outputs") \
    X(kernelcheck, "judge every kernel by its operator's reference") \
    X(devicecheck, "judge a device by what the ABI says of devices") \
    X(conform, "judge all that a plugin brings, and write a report") \
    X(completions, "what a shell completes: for bash, zsh or fish")

/* Declares one command. */
#define X(name, help) extern const cnri_command cnri_cmd_##name;
CNRI_COMMANDS(X)
#undef X
/* Number of one command. */
#define X(name, help) CNRI_CMD_##name,
enum { CNRI_COMMANDS(X) CNRI_N_COMMANDS };
#undef X
/* ---- cmd_completions.c ---- */
/* One row of CNRI_COMMANDS: a command and its line of help. */
typedef struct cnri_row {
    const cnri_command *command;
    const char *help;
} cnri_row;
extern const cnri_row cnri_commands[CNRI_N_COMMANDS];
/* Finds a command by name; NULL: there is none. */
const cnri_command *cnri_command_find(const char *name);
/* Prints a man page, or completions for bash, zsh or fish; false: there is no such form. */
bool cnri_print_completions(const char *form);
/* cnnrun --version [--json]; no row of CNRI_COMMANDS. (version.c) */
extern const cnri_command cnri_version;

/* ---- app.c ---- */
/* cnri_watch for work that runs a script, which may print: the progress bar is cleared before. The
 * call owns the observer. */
const cnr_observer *cnri_watch_script(cnri_call *call);
/* Draws the table `csv` to `picture` with the application of that name. Fails if it is not
 * installed, or ends with an error. */
cnr_status cnri_app_draw(const cnri_call *call, const char *name, const char *csv,
                         const char *picture, cnr_error *err);
/* Calls an installed script of scripts/calls with the object in `json`, which it ends and frees,
 * the call's net, and tensors. */
cnr_status cnri_call_script(const cnri_call *call, const char *name, cnri_json *json,
                            const cnr_tensor *const *tensors, int32_t n_tensors, cnr_error *err);

/* ---- application.c ---- */
struct cnri_lua_program;
/* Parses the words behind an application's name with the program's options and its own, and runs
 * it. `early` has the runtime, and the options before the name. Closes the program. Returns the
 * exit code. */
int cnri_application_run(cnri_call *early, struct cnri_lua_program *p, const char *path,
                         const char *output, int argc, char **argv);

/* ---- setup.c: from options to runtimes and models ---- */
/* Opens the runtime, and the governor of --governor. */
cnr_status cnri_call_open(cnri_call *call, cnr_error *err);
/* Joins the group of --group, or of the launcher that started this process; without either it
 * does nothing. Only rank 0 prints. (group.c) */
cnr_status cnri_call_join_group(cnri_call *call, cnr_error *err);
/* Leaves the group if call->code is 0; else ends all processes of the job with that code. */
void cnri_call_leave_group(const cnri_call *call);
/* How nets are loaded, by the options, with lists that it owns; free it after an error too. */
typedef struct cnri_loading {
    cnr_load_options options;
    const char **names; /* names of the symbols */
    int64_t *values;
    char *text;
} cnri_loading;
/* Fills the load options from the command line; cnri_loading_free frees *out. */
cnr_status cnri_call_loading(const cnri_call *call, cnri_loading *out, cnr_error *err);
void cnri_loading_free(cnri_loading *l); /* frees the lists */
/* True if an option says how pictures become a net's input. */
bool cnri_call_prepares(const cnri_common *c);
/* Takes the words behind the net as files of its weights. Loading the net calls this. */
cnr_status cnri_call_weights(cnri_call *call, cnr_error *err);
/* Loads the net of the first operand by the options, and sets its preprocessing. */
cnr_status cnri_call_model(cnri_call *call, cnr_error *err);
/* cnri_call_model without following a kept placement. */
cnr_status cnri_call_model_unplaced(cnri_call *call, cnr_error *err);
/* Loads the graph of operand 0 into call->graph. */
cnr_status cnri_call_graph(cnri_call *call, cnr_error *err);
/* Lets the model follow the placement kept in the cache folder, unless options place it
 * otherwise. */
cnr_status cnri_call_placed(cnri_call *call, cnr_error *err);
/* Makes a model of call->graph, which it then owns, with the same options. */
cnr_status cnri_call_model_of_graph(cnri_call *call, cnr_error *err);
/* Sets the preprocessing options for the picture inputs of `graph`. */
cnr_status cnri_call_preprocess(const cnri_call *call, cnr_graph *graph, cnr_error *err);

/* ---- steps.c ---- */
/* Steps for every input that takes pictures, in this order, checked together: "--crop" and
 * what stands behind it (NULL: not given). A mean may be a picture's file. */
typedef struct cnri_step_words {
    const char *option, *text;
} cnri_step_words;
/* Writes the words --mean, --std and so on into the graph's metadata for picture inputs. */
cnr_status cnri_preprocess_words(cnr_graph *g, const cnri_step_words *words, int32_t n,
                                 cnr_error *err);
/* Whether a text begins with a number that a comma, a space or the end follows: "104,117,123". */
bool cnri_is_numbers(const char *text);

/* ---- cmd_govern.c: --governor ---- */
/* Starts the governor, after the runtime is open; without --governor it does nothing. */
cnr_status cnri_call_govern(cnri_call *call, cnr_error *err);
/* Restores all knobs and prints the governor's result, for people on standard error. */
void cnri_call_end_govern(cnri_call *call);

/* Adds the properties that a device's plugin reports. Names with the same part before a dot form
 * an object. (cmd_devices.c) */
void cnri_json_facts(cnri_json *j, const cnri_fact_list *list);

/* ---- power_page.c: the live page of `energy log` and `watch` ---- */
typedef struct cnri_power_page cnri_power_page;
/* Opens the page of the meters at `where`, "8080" or "ADDRESS:8080", in *out, and prints the
 * address on stderr. To be closed before the runtime. */
cnr_status cnri_power_page_open(const cnri_call *call, const char *where, cnri_power_page **out,
                                cnr_error *err);
/* Shows the newest row of power to the page's visitors. */
cnr_status cnri_power_page_show(const cnri_power_page *p, const cnri_energy_row *r, cnr_error *err);
/* Closes the page of power; NULL: nothing. */
void cnri_power_page_close(cnri_power_page *p);

/* ---- metrics.c: values of metrics, as an object of JSON and as a line ("before" stands first)
 * ---- */
/* Adds an object of n metrics under a key; none: nothing. */
void cnri_json_metrics(cnri_json *j, const char *key, const cnr_metric_value *values, int64_t n);
/* Prints "BEFORE name value, name value"; nothing if n is 0. */
void cnri_say_metrics(const char *before, const cnr_metric_value *values, int64_t n);

/* ---- energy.c: what was measured, as fields and a line of the result that it belongs to ---- */
/* Measured energy as the fields and line of a result. */
typedef struct cnri_energy_shown {
    const char *source; /* NULL: energy was not requested */
    /* Unmeasured: why there are no joules; per: what they refer to, "a run". */
    const char *unmeasured, *per;
    const char *net_unmeasured; /* why there are no joules above idle */
    const char *missing;        /* domains that the sums lack */
    double seconds, joules, joules_net, watts, idle_watts, edp, fps, fps_per_watt;
    int64_t samples, rounds;
} cnri_energy_shown;
/* Energy as results show it; per: "a picture" or "in all"; e may be NULL. */
cnri_energy_shown cnri_energy_show(const cnr_energy *e, const char *per, double pictures);
/* Fields of a result for the cnri_energy_shown in member `at`. */
#define CNRI_ENERGY_FIELDS(owner, at) \
    CNRI_FIELD(owner, "energy_source", at.source), CNRI_FIELD(owner, "joules", at.joules), \
        CNRI_FIELD(owner, "joules_net", at.joules_net), CNRI_FIELD(owner, "watts", at.watts), \
        CNRI_FIELD(owner, "idle_watts", at.idle_watts), CNRI_FIELD(owner, "edp", at.edp), \
        CNRI_FIELD(owner, "fps", at.fps), CNRI_FIELD(owner, "fps_per_watt", at.fps_per_watt), \
        CNRI_MAYBE(owner, "samples", at.samples), CNRI_MAYBE(owner, "rounds", at.rounds), \
        CNRI_MAYBE(owner, "net_unmeasured", at.net_unmeasured), \
        CNRI_MAYBE(owner, "missing", at.missing), CNRI_ASIDE(owner, "per", at.per), \
        CNRI_ASIDE(owner, "unmeasured", at.unmeasured)
#define CNRI_ENERGY_LINE \
    "{joules?energy    {joules:.4g} J {per}{joules_net?, {joules_net:.4g} net of idle}, " \
    "{watts:.4g} W" \
    "{fps?, {fps:.4g} FPS, {fps_per_watt:.4g} FPS/W}, EDP {edp:.4g} J s\n" \
    "          of the whole machine{missing? but {missing}}, {energy_source}: {samples} samples " \
    "in {rounds} round{rounds+s}\n}" \
    "{net_unmeasured?          net of idle unmeasured: {net_unmeasured}\n}" \
    "{unmeasured?energy    unmeasured: {unmeasured}\n}"
/* A line each. fps: of the whole; NaN: nothing is counted. */
extern const cnri_record cnri_energy_domain;
/* Prints the energy of each domain; fps NAN: no rate. */
cnr_status cnri_tell_domains(const cnri_call *call, const cnr_energy *e, double fps,
                             cnr_error *err);

#endif
