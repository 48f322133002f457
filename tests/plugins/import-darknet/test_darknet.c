/* Darknet's sections: nets of one to three layers with weights written here, against arithmetic
 * done by hand or by Darknet's definitions; what is refused; damage. */
#include "plugins/importing.h"

enum { NEW = 20, OLD = 16, TURNED = 1 };

/* Saves a net on an input of c x h x w with its n weights (n < 0: none are given) as a model, in a
 * file with that header; NULL: refused. */
static cnr_model *model(const char *body, const int64_t dim[3], const float *weights, int n,
                        int header) {
    const char *cfg = cnrt_path("net.cfg"), *path = cnrt_path("net.weights");
    char text[4096];
    uint8_t file[4096] = {0};
    const int32_t version[] = {header == TURNED ? 1001 : 0, header == NEW ? 2 : 1, 0};
    const size_t head = header == NEW ? 20 : 16, bytes = (size_t)(n > 0 ? n : 0) * sizeof(float);
    snprintf(text, sizeof text, "[net]\nchannels=%d\nheight=%d\nwidth = %d # comment\n%s\n",
             (int)dim[0], (int)dim[1], (int)dim[2], body);
    cnrt_write(cfg, text, strlen(text));
    memcpy(file, version, sizeof version);
    if (bytes) memcpy(file + head, weights, bytes);
    cnrt_write(path, file, head + bytes);
    return cnrt_model("darknet", cfg, n < 0 ? NULL : path, NULL);
}

/* A test: a net of this body, with these weights under that header, gives the n numbers of `want`
 * for x. */
static void gives(const char *what, const char *body, const int64_t dim[3], const float *x,
                  const float *weights, int n_weights, const float *want, int n, int header) {
    cnr_model *m = model(body, dim, weights, n_weights, header);
    if (!m) note("%s: %s", cnrt_err.where, cnrt_err.text);
    const cnr_tensor *y =
        m ? cnrt_run(m, x, (const int64_t[]){1, dim[0], dim[1], dim[2]}, 4) : NULL;
    if (!ok(cnrt_distance(y, want, n) < 1e-5, "%s", what))
        for (int64_t i = 0; y && i < cnr_count(y); i++)
            note("%g, wanted %g", (double)((const float *)y->data)[i],
                 i < n ? (double)want[i] : NAN);
    if (m) cnr_release(m);
}

/* ---- layers: an input, weights and what comes out, all written by hand ---- */

/* A case. */
typedef struct row {
    const char *what, *body;
    int64_t dim[3];
    float x[10], weights[16];
    int n_weights;
    float want[10];
    int n;
} row;

#define SELF "[activation]\nactivation=linear\n"
#define LN3 1.0986123f

static const row rows[] = {
    {"convolution, dilated",
     "[convolutional]\nsize=3\ndilation=2\npad=1\nactivation=linear\n",
     {1, 1, 5},
     {1, 2, 3, 4, 5},
     {0, 0, 0, 0, 1, 0, 1, 0, 0, 0},
     10,
     {3, 4, 6, 2, 3},
     5},
    {"dilation of 1 x 1 counts for nothing",
     "[convolutional]\nsize=1\ndilation=7\nactivation=linear\n",
     {1, 1, 2},
     {1, 2},
     {1, 2},
     2,
     {3, 5},
     2},
    {"stride_x, and logistic where activation= is missing",
     "[convolutional]\nsize=1\nstride=1\nstride_x=2\n",
     {1, 2, 3},
     {LN3, 0, -LN3, 0, 0, LN3},
     {0, 1},
     2,
     {.75f, .25f, .5f, .75f},
     4},
    {"batch_normalize: bias, scale, mean, variance, weights",
     "[convolutional]\nbatch_normalize=1\nactivation=linear\n",
     {1, 1, 2},
     {1, 2},
     {10, 3, 4, 4, 8},
     5,
     {16, 28},
     2},
    {"groups",
     "[convolutional]\nfilters=2\ngroups=2\nactivation=relu\n",
     {2, 1, 1},
     {3, 4},
     {1, 1, 2, -1},
     4,
     {7, 0},
     2},
    {"share_index",
     "[convolutional]\nactivation=linear\n"
     "[convolutional]\nactivation=linear\nshare_index=-1\n",
     {1, 1, 1},
     {3},
     {1, 2},
     2,
     {15},
     1},
    {"antialiasing=1: the stride is the blur's",
     "[convolutional]\nstride=2\nantialiasing=1\nactivation=linear\n",
     {1, 1, 3},
     {16, 32, 48},
     {0, 1},
     2,
     {8, 16},
     2},
    {"antialiasing=2 behind a maxpool",
     "[maxpool]\nsize=1\nstride=2\nantialiasing=2\n",
     {1, 2, 2},
     {1, 2, 3, 6},
     {0},
     0,
     {3},
     1},
    {"deconvolution",
     "[deconvolutional]\nsize=2\nstride=2\nactivation=linear\n",
     {1, 1, 1},
     {3},
     {1, 1, 2, 3, 4},
     5,
     {4, 7, 10, 13},
     4},
    {"connected",
     "[connected]\noutput=2\nactivation=linear\n",
     {1, 1, 2},
     {1, 2},
     {10, 20, 1, 2, 3, 4},
     6,
     {15, 31},
     2},
    {"connected: weights before what normalises",
     "[connected]\noutput=1\nbatch_normalize=1\nactivation=linear\n",
     {2, 1, 1},
     {1, 2},
     {10, 1, 2, 3, 4, 4},
     6,
     {11.5f},
     1},
    {"local: weights a place",
     "[local]\nactivation=linear\n",
     {1, 1, 2},
     {3, 4},
     {1, 2, 10, 20},
     4,
     {31, 82},
     2},
    {"batchnorm", "[batchnorm]\n", {1, 1, 1}, {6}, {1, 2, 4, 4}, 4, {3}, 1},
    {"maxpool: the odd place of the padding is behind",
     "[maxpool]\nsize=2\nstride=1\n",
     {1, 1, 3},
     {1, 3, 2},
     {0},
     0,
     {3, 3, 2},
     3},
    {"maxpool: padding of both sides together",
     "[maxpool]\nsize=2\nstride=2\npadding=0\n",
     {1, 2, 4},
     {0, 1, 2, 3, 4, 5, 6, 7},
     {0},
     0,
     {5, 7},
     2},
    {"maxpool_depth to 2 channels",
     "[maxpool]\nmaxpool_depth=1\nout_channels=2\n",
     {4, 1, 1},
     {1, 8, 3, 4},
     {0},
     0,
     {3, 8},
     2},
    {"maxpool_depth to one",
     "[maxpool]\nmaxpool_depth=1\n",
     {4, 1, 1},
     {1, 8, 3, 4},
     {0},
     0,
     {8},
     1},
    {"local_avgpool counts what is there",
     "[local_avgpool]\nsize=2\nstride=1\n",
     {1, 1, 3},
     {1, 3, 2},
     {0},
     0,
     {2, 2.5f, 2},
     3},
    {"route of groups",
     SELF "[route]\nlayers=-1, 0\ngroups=2\ngroup_id=1\n",
     {2, 1, 2},
     {1, 2, 3, 4},
     {0},
     0,
     {3, 4, 3, 4},
     4},
    {"shortcut from fewer channels",
     SELF "[convolutional]\nfilters=2\nactivation=linear\n"
          "[shortcut]\nfrom=0\n",
     {1, 1, 2},
     {1, 2},
     {0, 10, 1, 3},
     4,
     {2, 4, 13, 16},
     4},
    {"shortcut from more channels",
     SELF "[convolutional]\nfilters=1\nactivation=linear\n"
          "[shortcut]\nfrom=-2\nactivation=linear\n",
     {2, 1, 1},
     {1, 2},
     {0, 10, 1},
     3,
     {13},
     1},
    {"shortcut from a larger plane",
     SELF "[maxpool]\nsize=2\nstride=2\npadding=0\n"
          "[shortcut]\nfrom=0\n",
     {1, 2, 4},
     {0, 1, 2, 3, 4, 5, 6, 7},
     {0},
     0,
     {5, 9},
     2},
    {"shortcut of three, alpha and beta",
     SELF SELF SELF "[shortcut]\nfrom=0,-2\nalpha=2\nbeta=3\n",
     {1, 1, 1},
     {1},
     {0},
     0,
     {8},
     1},
    {"shortcut, weights a channel through softmax",
     SELF "[convolutional]\nactivation=linear\n"
          "[shortcut]\nfrom=0\nweights_type=per_channel\nweights_normalization=softmax\n",
     {1, 1, 1},
     {5},
     {0, 2, 1, 1},
     4,
     {15 / 2.0001f},
     1},
    {"shortcut, weights a layer cut at 0",
     SELF "[convolutional]\nactivation=linear\n"
          "[shortcut]\nfrom=0\nweights_type=per_feature\nweights_normalization=relu\n",
     {1, 1, 1},
     {5},
     {0, 2, 3, -1},
     4,
     {30 / 3.0001f},
     1},
    {"scale_channels",
     SELF "[avgpool]\n[scale_channels]\nfrom=-2\n",
     {2, 1, 2},
     {1, 3, 2, 4},
     {0},
     0,
     {2, 6, 6, 12},
     4},
    {"scale_channels with scale_wh",
     SELF "[convolutional]\nactivation=linear\n"
          "[scale_channels]\nfrom=0\nscale_wh=1\n",
     {2, 1, 2},
     {1, 3, 2, 4},
     {0, 1, 1},
     3,
     {3, 21, 6, 28},
     4},
    {"sam",
     SELF "[activation]\nactivation=relu\n[sam]\nfrom=0\n",
     {1, 1, 2},
     {-1, 3},
     {0},
     0,
     {0, 9},
     2},
    {"upsample with a scale",
     "[upsample]\nstride=2\nscale=.5\n",
     {1, 1, 1},
     {2},
     {0},
     0,
     {1, 1, 1, 1},
     4},
    {"reorg3d",
     "[reorg3d]\nstride=2\n",
     {2, 2, 2},
     {1, 2, 3, 4, 5, 6, 7, 8},
     {0},
     0,
     {1, 5, 2, 6, 3, 7, 4, 8},
     8},
    {"crop: the middle, -1 to 1",
     "[crop]\ncrop_width=1\ncrop_height=1\n",
     {1, 1, 3},
     {.1f, .75f, .3f},
     {0},
     0,
     {.5f},
     1},
    {"crop with noadjust",
     "[crop]\ncrop_width=1\ncrop_height=1\nnoadjust=1\n",
     {1, 1, 3},
     {.1f, .75f, .3f},
     {0},
     0,
     {.75f},
     1},
    {"softmax in groups, cooled",
     "[softmax]\ngroups=2\ntemperature=2\n",
     {4, 1, 1},
     {0, 0, 2 * LN3, 0},
     {0},
     0,
     {.5f, .5f, .75f, .25f},
     4},
    {"softmax of each place",
     "[softmax]\nspatial=1\n",
     {2, 1, 2},
     {0, LN3, 0, 0},
     {0},
     0,
     {.5f, .75f, .5f, .25f},
     4},
    {"l2norm", "[l2norm]\n", {2, 1, 1}, {3, 4}, {0}, 0, {.6f, .8f}, 2},
    {"logistic, dropout, cost",
     "[logistic]\n[dropout]\n[cost]\n",
     {1, 1, 1},
     {LN3},
     {0},
     0,
     {.75f},
     1},
    {"yolo",
     "[yolo]\nclasses=1\nanchors=3,4\nscale_x_y=2\n",
     {6, 1, 1},
     {0, LN3, 2, 3, LN3, 0},
     {0},
     0,
     {.5f, 1, 2, 3, .75f, .5f},
     6},
    {"yolo with new_coords",
     "[yolo]\nclasses=1\nanchors=3,4\nscale_x_y=2\nnew_coords=1\n",
     {6, 1, 1},
     {.5f, .75f, 2, 3, .7f, .4f},
     {0},
     0,
     {.5f, 1, 2, 3, .7f, .4f},
     6},
    {"Gaussian_yolo: objectness less what is uncertain",
     "[Gaussian_yolo]\nclasses=1\nmask=1\nnum=2\nanchors=3,4,5,6\n",
     {10, 1, 1},
     {0, 0, LN3, 0, 2, 0, 3, -LN3, LN3, -LN3},
     {0},
     0,
     {.5f, .75f, 2, 3, .75f * .5625f, .25f},
     6},
    {"region",
     "[region]\nclasses=2\ncoords=4\nsoftmax=1\nanchors=1,1\n",
     {7, 1, 1},
     {0, LN3, 2, 3, LN3, LN3, 0},
     {0},
     0,
     {.5f, .75f, 2, 3, .75f, .75f, .25f},
     7},
    {"detection",
     "[detection]\nclasses=1\ncoords=4\nside=1\nnum=1\n",
     {6, 1, 1},
     {1, 2, 3, 4, 5, 6},
     {0},
     0,
     {1, 2, 3, 4, 5, 6},
     6},
};

/* What single layers compute. */
static void test_layers(void) {
    for (size_t i = 0; i < CNRI_COUNT(rows); i++) {
        const row *r = &rows[i];
        gives(r->what, r->body, r->dim, r->x, r->weights, r->n_weights, r->want, r->n,
              i % 2 ? NEW : OLD);
    }
    static const float turned[] = {10, 20, 1, 3, 2, 4}, x[] = {1, 2}, want[] = {15, 31};
    gives("connected, of a file with turned weights", "[connected]\noutput=2\nactivation=linear\n",
          (const int64_t[]){1, 1, 2}, x, turned, 6, want, 2, TURNED);
}

/* A padded 3 x 3 window with weights of its own at each of six places, against loops. */
static void test_local(void) {
    enum { C = 2, H = 2, W = 3, N = 2, P = H * W };
    float x[C * H * W], weights[N * P + P * N * C * 9], want[N * P];
    cnrt_noise(x, C * H * W, 1);
    cnrt_noise(weights, CNRI_COUNT(weights), 2);
    for (int n = 0; n < N; n++)
        for (int p = 0; p < P; p++) {
            double sum = (double)weights[n * P + p];
            for (int c = 0; c < C; c++)
                for (int k = 0; k < 9; k++) {
                    const int i = p / W + k / 3 - 1, j = p % W + k % 3 - 1;
                    if (i < 0 || j < 0 || i >= H || j >= W) continue;
                    sum += (double)x[(c * H + i) * W + j] *
                           (double)weights[N * P + ((p * N + n) * C + c) * 9 + k];
                }
            want[n * P + p] = (float)sum;
        }
    gives("local, padded", "[local]\nfilters=2\nsize=3\npad=1\nactivation=linear\n",
          (const int64_t[]){C, H, W}, x, weights, CNRI_COUNT(weights), want, N * P, NEW);
}

/* ---- activations, by their definitions ---- */

static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double relu6(double x) { return fmin(fmax(x, 0), 6); }
static double swish(double x) { return x * logistic(x); }
static double mish(double x) { return x * tanh(log1p(exp(x))); }
static double hard_mish(double x) { return x > 0 ? x : x > -2 ? x * x / 2 + x : 0; }
static double loggy(double x) { return 2 * logistic(x) - 1; }
static double elu(double x) { return x >= 0 ? x : exp(x) - 1; }
static double selu(double x) { return 1.0507 * (x >= 0 ? x : 1.6732 * (exp(x) - 1)); }
static double gelu(double x) { return 0.5 * x * (1 + tanh(0.797885 * x + 0.035677 * x * x * x)); }
static double relie(double x) { return x > 0 ? x : 0.01 * x; }
static double ramp(double x) { return (x > 0 ? x : 0) + 0.1 * x; }
static double leaky(double x) { return x > 0 ? x : 0.1 * x; }
static double hardtan(double x) { return fmin(fmax(x, -1), 1); }
static double lhtan(double x) { return x < 0 ? 0.001 * x : x > 1 ? 0.001 * (x - 1) + 1 : x; }
/* Darknet's plse. */
static double plse(double x) {
    return x < -4 ? 0.01 * (x + 4) : x > 4 ? 0.01 * (x - 4) + 1 : 0.125 * x + 0.5;
}
/* Darknet's stair. */
static double stair(double x) {
    const double n = floor(x);
    return fmod(n, 2) == 0 ? floor(x / 2) : (x - n) + floor(x / 2);
}

/* Each activation against its formula. */
static void test_activations(void) {
    static const struct {
        const char *name;
        double (*f)(double);
    } all[] = {{"logistic", logistic},   {"relu6", relu6}, {"swish", swish},     {"mish", mish},
               {"hard_mish", hard_mish}, {"loggy", loggy}, {"elu", elu},         {"selu", selu},
               {"gelu", gelu},           {"relie", relie}, {"ramp", ramp},       {"leaky", leaky},
               {"revleaky", leaky},      {"tanh", tanh},   {"hardtan", hardtan}, {"lhtan", lhtan},
               {"plse", plse},           {"stair", stair}};
    static const float x[] = {-7.25f, -4.5f, -1.75f, -0.5f, 0, 0.25f, 1.5f, 2.75f, 7.5f};
    enum { N = CNRI_COUNT(x) };
    float want[N];
    char body[100];
    for (size_t i = 0; i < CNRI_COUNT(all); i++) {
        for (int k = 0; k < N; k++) want[k] = (float)all[i].f((double)x[k]);
        snprintf(body, sizeof body, "[activation]\nactivation=%s\n", all[i].name);
        gives(all[i].name, body, (const int64_t[]){1, 3, 3}, x, NULL, 0, want, N, NEW);
    }
    static const float three[] = {-1, 1, 3};
    static const char *const shares[] = {"normalize_channels", "normalize_channels_softmax",
                                         "normalize_channels_softmax_maxval"};
    for (int kind = 0; kind < 3; kind++) {
        double e[3], sum = 1e-4;
        for (int k = 0; k < 3; k++) {
            const double v = (double)three[k];
            sum += e[k] = kind == 0 ? fmax(v, 0) : exp(v - (kind == 2 ? 3 : 0));
        }
        for (int k = 0; k < 3; k++) want[k] = (float)(e[k] / sum);
        snprintf(body, sizeof body, "[activation]\nactivation=%s\n", shares[kind]);
        gives(shares[kind], body, (const int64_t[]){3, 1, 1}, three, NULL, 0, want, 3, NEW);
    }
}

/* ---- what is refused ---- */

/* A test: the body is refused, and the message has both texts. */
static void refused(const char *body, const float *weights, int n, const char *first,
                    const char *second) {
    cnr_model *m = model(body, (const int64_t[]){1, 2, 2}, weights, n, NEW);
    ok(!m, "refused: %s", first);
    has_text(cnrt_err.text, first, "and named");
    if (second) has_text(cnrt_err.text, second, "with what else there is");
    if (m) cnr_release(m);
}

/* What is not supported is refused with its place. */
static void test_refused(void) {
    static const float one[] = {0, 1, 2};
    refused("[convolutional]\nxnor=1\nactivation=linear\n[convolutional]\nxnor=1\nactivation=odd\n",
            NULL, -1, "net.cfg:5: layer 0 [convolutional]: xnor=1", "activation \"odd\"");
    refused("[lstm]\noutput=3\n[maxpool]\n[strange]\n", NULL, -1, "recurrent", "[strange]");
    refused("[softmax]\ntree=a.tree\n", NULL, -1, "tree=a.tree", NULL);
    refused("[reorg]\nextra=1\n", NULL, -1, "extra=1", NULL);
    refused("[shortcut]\nfrom=4\n", NULL, -1, "not before it", NULL);
    refused("[route]\nlayers=\n", NULL, -1, "layers is missing", NULL);
    refused("[yolo]\nmask=3\nanchors=1,2\n", NULL, -1, "anchor", NULL);
    refused("[convolutional]\nfilters=2\n", one, 3, "the weights file ends", NULL);
    refused("[convolutional]\n", one, 3, "1 values are left over", NULL);
    refused("[maxpool]\nstride=0\n", NULL, -1, "stride", NULL);
    refused("[connected]\noutput=16777216\n[connected]\noutput=16777216\n", one, 3, "wanted", NULL);
}

/* ---- sizes other than the file's, and damage ---- */

static const char detector[] =
    "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=2\npad=1\nactivation=mish\n"
    "[convolutional]\nfilters=4\ngroups=2\nsize=3\npad=1\nactivation=leaky\n"
    "[shortcut]\nfrom=-2\nactivation=linear\nweights_type=per_channel\n"
    "[maxpool]\nsize=2\nstride=2\n[upsample]\nstride=2\n[route]\nlayers=-1,0\n"
    "[convolutional]\nfilters=6\nsize=1\nactivation=linear\n"
    "[yolo]\nmask=0\nclasses=1\nnum=1\nanchors=3,4\n";
enum { DETECTOR_WEIGHTS = 16 + 36 + 4 + 72 + 8 + 6 + 48 };

/* A shortcut between different sizes. */
static void test_open_shortcut(void) {
    float x[24], want[6];
    for (int c = 0; c < 6; c++) {
        x[4 * c] = (float)c, x[4 * c + 1] = x[4 * c + 2] = 0, x[4 * c + 3] = (float)(c + 1);
        want[c] = (float)(2 * c + 1);
    }
    gives("shortcut from a larger plane where sizes are open",
          SELF "[maxpool]\nsize=2\nstride=2\npadding=0\n[shortcut]\nfrom=0\n"
               "[yolo]\nclasses=1\nmask=0\nnum=1\nanchors=1,1\nnew_coords=1\n",
          (const int64_t[]){6, 2, 2}, x, NULL, 0, want, 6, NEW);
}

/* A small detector gives the boxes that are computed here. */
static void test_detector(void) {
    float weights[DETECTOR_WEIGHTS], x[2 * 24 * 16];
    static const int64_t dim[] = {1, 8, 8};
    cnrt_noise(weights, DETECTOR_WEIGHTS, 3);
    for (int i = 12; i < 16; i++) weights[i] = 0.5f; /* variances */
    cnrt_noise(x, CNRI_COUNT(x), 4);
    cnr_model *m = model(detector, dim, weights, DETECTOR_WEIGHTS, NEW);
    const cnr_tensor *y = cnrt_run(m, x, (const int64_t[]){2, 1, 24, 16}, 4);
    ok(y && y->rank == 4 && y->dim[0] == 2 && y->dim[1] == 6 && y->dim[2] == 12 && y->dim[3] == 8,
       "a detector on a batch of another size");
    if (m) cnr_release(m);
    char cfg[256], file[256];
    const char *const paths[] = {strcpy(cfg, cnrt_path("net.cfg")),
                                 strcpy(file, cnrt_path("net.weights"))};
    for (int32_t i = 0; i < 2; i++) cnrt_survives("darknet", paths, 2, i, NULL, 1000);
    ok(!model(detector, dim, NULL, -1, NEW), "without weights it does not run");
    has_text(cnrt_err.text, "0_convolutional.weight); a weights file is wanted", "and says why");
}

int main(void) {
    if (!cnrt_begin("darknet")) {
        ok(1, "# SKIP import-darknet was not built");
        return cnrt_end();
    }
    test_layers();
    test_local();
    test_activations();
    test_refused();
    test_open_shortcut();
    test_detector();
    return cnrt_end();
}
