/* Hints for files of frameworks that are not supported: what they are, and how to convert them to
 * ONNX. */
#include "onnx.h"

static const struct {
    const char *ending, *text;
} others[] = {
    {".pt", "a model of PyTorch, which is not read: export it by torch.onnx.export(model, example, "
            "\"net.onnx\"); one of Ultralytics by \"yolo export model=FILE.pt format=onnx\""},
    {".pth", "weights of PyTorch, which are not read: load them into the model and export it by "
             "torch.onnx.export(model, example, \"net.onnx\")"},
    {".ckpt", "a checkpoint, which is not read: export its model to ONNX with the framework that "
              "wrote it (torch.onnx.export, tf2onnx)"},
    {".safetensors",
     "weights without a net, which are not read: load them into the model and export "
     "it by torch.onnx.export(model, example, \"net.onnx\")"},
    {".tflite",
     "a model of TensorFlow Lite, which is not read: "
     "\"python -m tf2onnx.convert --tflite FILE.tflite --output net.onnx\" makes ONNX of it"},
    {".h5",
     "a model of Keras, which is not read: tf2onnx.convert.from_keras(model) in Python makes "
     "ONNX of it"},
    {".keras", "a model of Keras, which is not read: tf2onnx.convert.from_keras(model) in Python "
               "makes ONNX of it"},
    {".param",
     "a net of ncnn, which is not read: take the model that it was converted from, as ONNX "
     "or Caffe"},
    {".mlmodel",
     "a model of Core ML, which is not read: take the model that it was converted from, as "
     "ONNX"},
    {".xml", "if it is a model of OpenVINO, those are not read: take the model that it was "
             "converted from, as ONNX"},
    {".mnn", "a model of MNN, which is not read: take the model that it was "
             "converted from, as ONNX"},
    {".pdmodel", "a model of PaddlePaddle, which is not read: \"paddle2onnx --model_dir DIR "
                 "--save_file net.onnx\" makes ONNX of it"},
    {".engine",
     "an engine of TensorRT, which only runs there: take the ONNX file that it was built "
     "of"},
    {".trt",
     "an engine of TensorRT, which only runs there: take the ONNX file that it was built of"},
    {".tar", "an archive: unpack it, and give the model in it"},
    {".zip", "an archive: unpack it, and give the model in it"},
};

const char *onnx_other(const char *path) {
    for (size_t i = 0; i < CNR_ROWS(others); i++)
        if (imp_ends_with(path, others[i].ending)) return others[i].text;
    return NULL;
}
