"""What the graphs of tensorflow_compare.py share."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops
GRAPHS = {}
# The largest difference where TensorFlow itself is less exact: its cubic comes from a table.
LIMITS = {"resize_bicubic": 2e-3}
OPTIONS = {
    "no_shape": ["shape=9,11,6"],
    "ssd_cut": ["shape.Preprocessor/sub=32,32,3", "outputs=output0,output1"],
    "dropout_by_placeholder": ["value.keep_prob=1"]
}
FED = {"ssd_cut": {"Preprocessor/sub": (2, 32, 32, 3)}}
VALUES = {"dropout_by_placeholder": {"keep_prob": 1.0}}


def graph(make):
    """A function that builds a graph out of placeholders; what it returns becomes the outputs."""
    GRAPHS[make.__name__] = make
    return make


class Noise:

    def __init__(self):
        """Numbers at random, the same each time."""
        self.random = np.random.RandomState(5)

    def __call__(self, *shape, low=-1.0, high=1.0, dtype="f4"):
        """An array of this shape."""
        return np.asarray(self.random.rand(*shape) * (high - low) + low, dtype)


def pictures(shape=(2, 9, 11, 6), name="x", dtype=tf.float32):
    """A placeholder of pictures."""
    return v1.placeholder(dtype, shape, name=name)


def conv(x, w, stride=1, padding="SAME", **more):
    """A convolution."""
    return raw.Conv2D(input=x, filter=w, strides=[1, stride, stride, 1], padding=padding, **more)
