/* Damaged copies of every real model, and of our pictures: an error that says something or a load,
 * and then a run, within 5 seconds and the memory that the file is worth; nothing else.
 * CNNRUN_DAMAGED=1000 sets how many copies of each (30, of which every tenth is run),
 * CNNRUN_DAMAGED_MODEL picks models by a part of their path, CNNRUN_PICTURES=1000 sets how many
 * copies of pictures (100). */
#include "tests/fuzz/targets.h"
#include "tests/hostile/each.h"
#include <dirent.h>
#include <time.h>

/* The model's file, and that of its weights where they are apart; .msg lie beside and are named in
 * the model, so that one of them is there and the others are missed. Then an importer's option. */
static const char *const known[][3] = {
    {"caffe/cifar10/cifar10_full.prototxt", "caffe/cifar10/cifar10_full_iter_70000.caffemodel"},
    {"caffe/cifar10/cifar10_quick.prototxt", "caffe/cifar10/cifar10_quick_iter_5000.caffemodel"},
    {"caffe/lenet/lenet_deploy.prototxt", "caffe/lenet/lenet_iter_10000.caffemodel"},
    {"caffe/lenet/bvlc_lenet_train_test.prototxt", NULL},
    {"caffe/mtcnn/det1.prototxt", "caffe/mtcnn/det1.caffemodel"},
    {"caffe/mtcnn/det2.prototxt", "caffe/mtcnn/det2.caffemodel"},
    {"caffe/mtcnn/det3.prototxt", "caffe/mtcnn/det3.caffemodel"},
    {"caffe/mtcnn/det4.prototxt", "caffe/mtcnn/det4.caffemodel"},
    {"caffe/squeezenet_v1.0_deepcompression/deploy.prototxt",
     "caffe/squeezenet_v1.0_deepcompression/squeezenet_v1.0_decompressed.caffemodel"},
    {"caffe/squeezenet_v1.1/deploy.prototxt",
     "caffe/squeezenet_v1.1/squeezenet_v1.1_fp16values.caffemodel"},
    {"caffe/ultraface/RFB-320.prototxt", "caffe/ultraface/RFB-320.caffemodel"},
    {"caffe/ultraface/slim-320.prototxt", "caffe/ultraface/slim-320.caffemodel"},
    {"caffe/waifu2x_upresnet10/scale2.0x_model.prototxt",
     "caffe/waifu2x_upresnet10/scale2.0x_model.json.caffemodel"},
    {"caffe/wechat_qrcode/detect.prototxt", "caffe/wechat_qrcode/detect.caffemodel"},
    {"caffe/wechat_qrcode/sr.prototxt", "caffe/wechat_qrcode/sr.caffemodel"},
    {"darknet/tiny-darknet/tiny.cfg", "darknet/tiny-darknet/tiny.weights"},
    {"darknet/yolo-fastest/yolo-fastest-1.1.cfg", "darknet/yolo-fastest/yolo-fastest-1.1.weights"},
    {"darknet/yolo-fastest/yolo-fastest-1.1-xl.cfg",
     "darknet/yolo-fastest/yolo-fastest-1.1-xl.weights"},
    {"darknet/yolo-lite/coco-trial6.cfg", "darknet/yolo-lite/coco-trial6_653550.weights"},
    {"darknet/yolo-lite/tiny-yolov2-trial3.cfg", "darknet/yolo-lite/tiny-yolov2-trial3.weights"},
    {"darknet/yolo-lite/tiny-yolov2-trial3-noBatch.cfg",
     "darknet/yolo-lite/tiny-yolov2-trial3-noBatch.weights"},
    {"tensorflow/mnist/beginner-graph.pb", NULL},
    {"tensorflow/mnist/k210_mnist.pb", NULL},
    {"tensorflow/mnist/lenet5_mnist_frozen.pb", NULL},
    {"tensorflow/mobilenet_v1_0.25_224/frozen_graph.pb", NULL},
    {"tensorflow/mobilenet_v1_0.25_224/quantized_graph.pb", NULL},
    {"tensorflow/mtcnn/mtcnn.pb", NULL},
    {"tensorflow/opencv_face_detector/opencv_face_detector_uint8.pb", NULL},
    {"onnx/mnist/model.onnx", NULL},
    {"onnx/mnist/test_data_set_0/input_0.pb", NULL},
    {"onnx/nanodet/nanodet_m.onnx", NULL},
    {"onnx/super_resolution/super_resolution.onnx", NULL},
    {"onnx/ultraface/version-RFB-320.onnx", NULL},
    {"onnx/ultraface/version-RFB-320_without_postprocessing.onnx", NULL},
    {"onnx/ultraface/version-slim-320.onnx", NULL},
    {"onnx/yolox_nano/yolox_nano.onnx", NULL},
    {"onnx/yunet/yunet_n_320_320.onnx", NULL},
    {"onnx/yunet/yunet_n_dynamic.onnx", NULL},
    {"onnx/yunet/yunet_s_320_320.onnx", NULL},
    {"onnx-light/light_bvlc_alexnet.onnx", NULL},
    {"onnx-light/light_inception_v1.onnx", NULL},
    {"onnx-light/light_resnet50.onnx", NULL},
    {"onnx-light/light_squeezenet.onnx", NULL},
    {"onnx-light/light_zfnet512.onnx", NULL},
    {"torch7/bumper/model.net", NULL},
    {"torch7/hw1/model.t7", NULL},
    {"torch7/lenet5/LeNet5.nn", NULL},
    {"mxnet/lenet/lenet-symbol.json", "mxnet/lenet/lenet-0001.params", "shape=1,28,28"},
    {"mxnet/mtcnn/det1-symbol.json", "mxnet/mtcnn/det1-0001.params"},
    {"mxnet/mtcnn/det2-symbol.json", "mxnet/mtcnn/det2-0001.params", "shape=3,24,24"},
    {"mxnet/mtcnn/det3-symbol.json", "mxnet/mtcnn/det3-0001.params", "shape=3,48,48"},
    {"mxnet/mtcnn/det4-symbol.json", "mxnet/mtcnn/det4-0001.params", "shape=15,24,24"},
    {"cnndroid/cifar10/Cifar10_def.txt", "cnndroid/cifar10/model_param_conv1.msg"},
    {"cnndroid/cifar10/Cifar10_def.txt", "cnndroid/cifar10/model_param_ip2.msg"},
    {"cnndroid/cifar10/Cifar10_def.txt", "cnndroid/cifar10/mean.msg"},
    {"cnndroid/netfile-examples/AlexNet_def.txt", NULL},
    {"cnndroid/netfile-examples/NIN_def.txt", NULL},
};

/* ---- damage ---- */

/* A place: anywhere, or near the front, where headers are. */
static size_t place(size_t n) { return each_dice(2) ? each_dice(n) : each_dice(n < 512 ? n : 512); }

/* Damages n bytes of data in place, which has space for n + 64; returns the new length. */
static size_t damage(uint8_t *data, size_t n) {
    static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff, '-', '9', '{', '"', '\n'};
    for (uint64_t times = each_dice(2) ? 1 : 1 + each_dice(8); times > 0 && n > 0; times--) {
        const size_t at = place(n);
        size_t length = 1 + each_dice(each_dice(4) ? 8 : n - at < 4096 ? n - at : 4096);
        if (length > n - at) length = n - at;
        switch (each_dice(7)) {
        case 0: data[at] ^= (uint8_t)(1u << each_dice(8)); break;
        case 1: data[at] = nasty[each_dice(sizeof nasty)]; break;
        case 2: data[at] = (uint8_t)each_dice(256); break;
        case 3: /* cut the end off, mostly a little */
            n = each_dice(3) ? n - each_dice(n < 64 ? n : 64) : at;
            break;
        case 4: /* take out */
            memmove(data + at, data + at + length, n - at - length);
            n -= length;
            break;
        case 5: /* put in */
            if (length > 8) length = 8;
            memmove(data + at + length, data + at, n - at);
            for (size_t i = 0; i < length; i++) data[at + i] = (uint8_t)each_dice(256);
            n += length;
            break;
        default: /* a large number */
            for (size_t i = 0; i < 5 && at + i < n; i++) data[at + i] = 0xff;
        }
    }
    return n;
}

/* ---- one model ---- */

/* Running takes longer than loading: in a plain run only every tenth copy does. */
static int run_every = 10;

/* A model's files. */
typedef struct model {
    char path[600];
    uint8_t *first, *second;
    size_t n, m;
} model;

/* Seconds by the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Loads one copy, damaged as its number says (-1: undamaged); the content chooses the reader. */
static int one(const model *x, int copy) {
    uint8_t *data = malloc(x->n + x->m + 256);
    if (!data) _exit(4);
    each_state = (uint64_t)copy * 77;
    uint8_t *first = data + 8;
    memcpy(first, x->first, x->n);
    size_t n = x->n, m = x->m;
    const int weights = x->m && copy % 2;
    if (copy >= 0 && !weights) n = damage(first, n);
    if (m) memcpy(first + n, x->second, m);
    if (copy >= 0 && weights) m = damage(first + n, m);
    memcpy(data, "PAIR", 4);
    for (int i = 0; i < 4; i++) data[4 + i] = (uint8_t)(n >> (8 * i));
    const int good = x->m ? fuzz_run("load", data, 8 + n + m) : fuzz_run("load", first, n);
    free(data);
    return good;
}

/* Case i of the damaged model `arg`: as one(), and every run_every-th also runs the net. */
static int copy_of(void *arg, int i) {
    fuzz.runs = run_every > 0 && i % run_every == 0;
    return one(arg, i);
}

/* Tests: a model with many damages. */
static void check(const model *x, int many) {
    const double begun = now();
    const int sound = one(x, -1);
    const each e = {.one = copy_of,
                    .arg = (void *)x,
                    .addresses = (uint64_t)2 << 30,
                    .grown = run_every > 1 ? 256 + 8 * (long)((x->n + x->m) >> 20) : 0};
    const each_result r = each_run(&e, many);
    ok(!r.bad, "%s: %d copies, %d taken (%s, %.1f s)", x->path, many, r.taken,
       sound > 0 ? "sound itself" : "refused itself", now() - begun);
}

/* Reads a model's files; 0: they are missing. */
static int load(model *x, const char *shared, const char *first, const char *second) {
    char path[1200];
    memset(x, 0, sizeof *x);
    snprintf(x->path, sizeof x->path, "%s%s%s", first, second ? " + " : "", second ? second : "");
    const char *only = getenv("CNNRUN_DAMAGED_MODEL");
    if (only && !strstr(x->path, only)) return 0;
    fuzz.name = strrchr(first, '/') + 1;
    fuzz.other = second ? strrchr(second, '/') + 1 : NULL;
    fuzz.beside = second && strstr(second, ".msg");
    snprintf(path, sizeof path, "%s/%s", shared, first);
    if (!(x->first = fuzz_read(path, &x->n))) {
        skip(first, "not there");
        return 0;
    }
    if (!second) return 1;
    snprintf(path, sizeof path, "%s/%s", shared, second);
    if (!(x->second = fuzz_read(path, &x->m))) skip(second, "not there");
    return x->second != NULL;
}

/* Tests: `many` damaged copies of a model, if it is there. */
static void one_model(const char *shared, const char *first, const char *second, const char *option,
                      int many) {
    model x;
    fuzz.option = option;
    if (load(&x, shared, first, second)) check(&x, many);
    cnri_free(x.first);
    cnri_free(x.second);
}

/* ---- pictures ---- */

/* Case i: one damaged picture. */
static int picture(void *arg, int i) {
    const model *x = arg;
    uint8_t *data = malloc(x->n + 256);
    if (!data) _exit(4);
    each_state = (uint64_t)i * 77;
    memcpy(data, x->first, x->n);
    const int good = fuzz_run("source-images", data, damage(data, x->n));
    free(data);
    return good;
}

/* Tests: pictures with many damages. */
static void pictures(const char *folder, int many) {
    DIR *d = opendir(folder);
    int n = 0, left;
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) rewinddir(d);
    left = n;
    for (struct dirent *e; d && (e = readdir(d));) {
        model x = {.first = NULL};
        if (e->d_name[0] == '.') continue;
        snprintf(x.path, sizeof x.path, "%.300s/%.250s", folder, e->d_name);
        x.first = fuzz_read(x.path, &x.n);
        if (!x.first) continue;
        const int share = many / left; /* of what is left */
        const each all = {.one = picture, .arg = &x, .addresses = (uint64_t)2 << 30};
        const each_result r = each_run(&all, share);
        ok(!r.bad, "%s: %d copies, %d taken", e->d_name, share, r.taken);
        many -= share;
        left--;
        cnri_free(x.first);
    }
    if (d) closedir(d);
}

int main(void) {
    const char *shared = tap_shared(), *copies_wanted = getenv("CNNRUN_DAMAGED");
    const int many = copies_wanted ? atoi(copies_wanted) : 30;
    const char *pictures_wanted = getenv("CNNRUN_PICTURES");
    static const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const double begun = now();
    if (copies_wanted) run_every = 1;
    if (!fuzz_open(dirs[0])) return 1;
    fuzz.dirs = dirs;
    if (!cnri_descriptor_find(CNR_KIND_SOURCE, "images"))
        skip("pictures", "source-images is not there");
    else
        pictures(CNRT_SOURCE_DIR "/tests/plugins/source-images/pictures",
                 pictures_wanted ? atoi(pictures_wanted) : 100);
    one_model(CNRT_SOURCE_DIR, "scripts/nets/lenet5.cnr", NULL, NULL, many);
    one_model(CNRT_SOURCE_DIR, "tests/fuzz/corpus/native/tiny.cnr", NULL, NULL, 10 * many);
    one_model(CNRT_SOURCE_DIR, "tests/fuzz/tiny.lua", "tests/fuzz/corpus/weights/named.npz", NULL,
              many);
    if (!shared) skip("real models", "no ../shared/data");
    for (size_t i = 0; shared && i < sizeof known / sizeof known[0]; i++) {
        /* in a plain run no longer than the suite may take; with a number asked for, all of it */
        if (!copies_wanted && now() - begun > 40) skip(known[i][0], "left out: 40 s are over");
        else one_model(shared, known[i][0], known[i][1], known[i][2], many);
    }
    fuzz_close();
    return done();
}
