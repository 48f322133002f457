"""Draws models of the domain ai.onnx.ml by seed and compares cnnrun.ort with ONNX Runtime.

    PYTHON tests/peers/random_ml.py [--models 300] [--seed 1] [--work DIR] [--sklearn]

wants an interpreter that has cnnrun, onnxruntime and onnx. --sklearn adds models that scikit-learn fitted and skl2onnx
wrote. Labels and maps must be the same, numbers as near as 1e-5. What either side refuses is counted, by its reason.
"""
import argparse
import collections
import os
import sys

import cnnrun.ort
import numpy as np
import onnxruntime
from onnx import TensorProto as T, helper as h

POSTS = ["NONE", "LOGISTIC", "SOFTMAX"]


class Draw:
    def __init__(self, seed):
        """Draws sizes and types."""
        self.r = np.random.RandomState(seed)
        self.rows, self.columns = int(self.r.randint(1, 9)), int(self.r.randint(1, 7))
        self.kind = [(T.FLOAT, "f4"), (T.FLOAT, "f4"), (T.DOUBLE, "f8"), (T.INT64, "i8")][self.r.randint(4)]

    def pick(self, items):
        """One of the items."""
        return items[self.r.randint(len(items))]

    def numbers(self, n):
        """n floats."""
        return [float(np.float32(v)) for v in self.r.randn(n)]

    def labels(self, n, names=("classlabels_ints", "classlabels_strings")):
        """n labels: numbers or texts."""
        kind = self.r.randint(3)
        if kind == 0:
            return {names[0]: list(range(n))}
        if kind == 1:
            return {names[0]: [int(v) for v in self.r.permutation(50)[:n]]}
        return {names[1]: ["class %d" % i for i in range(n)]}

    def model(self, nodes, outputs):
        """A model of these nodes."""
        x = h.make_tensor_value_info("x", self.kind[0], ["N", self.columns])
        graph = h.make_graph(nodes, "drawn", [x], [h.make_empty_tensor_value_info(o) for o in outputs])
        return h.make_model(graph, ir_version=8, opset_imports=[h.make_opsetid("", 15), h.make_opsetid("ai.onnx.ml", 3)])

    def input(self):
        """An input."""
        x = self.r.randn(self.rows, self.columns)
        return (np.round(x * 2) if self.kind[1] == "i8" else x).astype(self.kind[1])


def node(op, inputs, outputs, **attrs):
    """A node of ai.onnx.ml."""
    return h.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attrs)


def linear_regressor(d):
    """A linear regressor."""
    n = int(d.r.randint(1, 4))
    d.kind = (T.FLOAT, "f4")
    more = {"intercepts": d.numbers(n)} if d.r.rand() < .7 else {}
    return d.model([node("LinearRegressor", ["x"], ["y"], coefficients=d.numbers(n * d.columns), targets=n,
                         post_transform=d.pick(POSTS if n > 1 else POSTS[:1]), **more)], ["y"])


def told(d, classifier):
    """A classifier's label and scores as they are, or as exporters go on."""
    ways = d.r.randint(3)
    if ways == 0:
        return d.model([classifier], ["label", "scores"])
    last = "scores"
    nodes = [classifier]
    if ways == 1:
        nodes.append(node("Normalizer", ["scores"], ["normal"], norm="L1"))
        last = "normal"
    labels = {a.name: h.get_attribute_value(a) for a in classifier.attribute if a.name.startswith("classlabels")}
    ints, strings = labels.get("classlabels_ints") or labels.get("classlabels_int64s"), labels.get("classlabels_strings")
    nodes.append(node("ZipMap", [last], ["map"], **({"classlabels_int64s": ints} if ints else {"classlabels_strings": strings})))
    return d.model(nodes, ["label", "map"])


def linear_classifier(d):
    """A linear classifier."""
    n = int(d.r.randint(2, 5))
    rows = 1 if n == 2 and d.r.rand() < .6 else n
    return told(d, node("LinearClassifier", ["x"], ["label", "scores"], coefficients=d.numbers(rows * d.columns),
                        intercepts=d.numbers(rows), multi_class=0, post_transform=d.pick(POSTS[:2] if rows == 1 else POSTS),
                        **d.labels(n)))


def tree(d, trees, give):
    """Attributes of an ensemble; give(tree, node) adds a leaf's weights."""
    a = collections.defaultdict(list)
    mode = d.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
    missing = d.r.rand() < .5
    for t in range(trees):
        count = 0
        open_nodes = [0]
        depth = {0: 0}
        while open_nodes:
            i = open_nodes.pop(0)
            leaf = depth[i] > 5 or d.r.rand() < .25
            yes, no = (0, 0) if leaf else (count + 1, count + 2)
            for key, value in (("treeids", t), ("nodeids", i), ("featureids", 0 if leaf else int(d.r.randint(d.columns))),
                               ("values", 0.0 if leaf else float(np.float32(np.round(d.r.randn() * 2) / 2))),
                               ("modes", "LEAF" if leaf else mode), ("truenodeids", yes), ("falsenodeids", no),
                               ("hitrates", 1.0), ("missing_value_tracks_true", int(missing and d.r.rand() < .5))):
                a["nodes_" + key].append(value)
            if leaf:
                give(t, i)
            else:
                count += 2
                depth[yes] = depth[no] = depth[i] + 1
                open_nodes += [yes, no]
    return dict(a)


def tree_regressor(d):
    """A regressor of trees."""
    n = int(d.r.randint(1, 4))
    leaves = collections.defaultdict(list)

    def give(t, i):
        """Gives a leaf its numbers."""
        for k in range(n):
            for key, value in (("treeids", t), ("nodeids", i), ("ids", k), ("weights", d.numbers(1)[0])):
                leaves["target_" + key].append(value)

    more = {"base_values": d.numbers(n)} if d.r.rand() < .5 else {}
    a = tree(d, int(d.r.randint(1, 6)), give)
    how = d.pick(["SUM", "AVERAGE"] + (["MIN", "MAX"] if n == 1 else []))
    return d.model([node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=n, aggregate_function=how,
                         post_transform=d.pick(POSTS if n > 1 else POSTS[:1]), **a, **leaves, **more)], ["y"])


def tree_classifier(d):
    """A classifier of trees."""
    n = int(d.r.randint(2, 5))
    one, positive = n == 2, d.r.rand() < .5  # for weights of both of two classes ONNX Runtime's label is not the larger
    leaves = collections.defaultdict(list)

    def give(t, i):
        """Gives a leaf its shares."""
        shares = d.r.rand(n) / 5 if positive else d.r.randn(n)
        for k in [0] if one else range(n):
            for key, value in (("treeids", t), ("nodeids", i), ("ids", k), ("weights", float(np.float32(shares[k])))):
                leaves["class_" + key].append(value)

    a = tree(d, int(d.r.randint(1, 6)), give)
    more = {"base_values": d.numbers(1 if one else n)} if d.r.rand() < .4 else {}
    return told(d, node("TreeEnsembleClassifier", ["x"], ["label", "scores"], post_transform=d.pick(POSTS[:2] if one else POSTS),
                        **a, **leaves, **more, **d.labels(n, ("classlabels_int64s", "classlabels_strings"))))


def scaler(d):
    """A scaler."""
    n = d.pick([1, d.columns])
    return d.model([node("Scaler", ["x"], ["y"], offset=d.numbers(n), scale=d.numbers(n))], ["y"])


def normalizer(d):
    """A normaliser."""
    return d.model([node("Normalizer", ["x"], ["y"], norm=d.pick(["MAX", "L1", "L2"]))], ["y"])


def binarizer(d):
    """A binariser."""
    d.kind = (T.FLOAT, "f4")
    return d.model([node("Binarizer", ["x"], ["y"], threshold=d.numbers(1)[0])], ["y"])


def imputer(d):
    """An imputer."""
    n = d.pick([1, d.columns])
    if d.kind[1] == "i8":
        return d.model([node("Imputer", ["x"], ["y"], imputed_value_int64s=[7] * n, replaced_value_int64=1)], ["y"])
    d.kind = (T.FLOAT, "f4")
    return d.model([node("Imputer", ["x"], ["y"], imputed_value_floats=d.numbers(n),
                         replaced_value_float=d.pick([float("nan"), 0.0]))], ["y"])


def vectorizer(d):
    """A joiner of vectors."""
    d.kind = (T.FLOAT, "f4")
    return d.model([node("Scaler", ["x"], ["s"], offset=[1.0], scale=[2.0]),
                    node("FeatureVectorizer", ["x", "s"], ["y"], inputdimensions=[d.columns] * 2)], ["y"])


def extractor(d):
    """An extractor of columns."""
    index = [int(d.r.randint(d.columns)) for _ in range(3)]
    made = h.make_node("Constant", [], ["i"], value=h.make_tensor("v", T.INT64, [3], index))
    return d.model([made, node("ArrayFeatureExtractor", ["x", "i"], ["y"])], ["y"])


def one_hot(d):
    """A one-hot encoder."""
    d.kind = (T.INT64, "i8")
    return d.model([node("OneHotEncoder", ["x"], ["y"], cats_int64s=[-2, 0, 1, 3], zeros=1)], ["y"])


KINDS = [linear_regressor, linear_classifier, linear_classifier, tree_regressor, tree_classifier, tree_classifier, scaler,
         normalizer, binarizer, imputer, vectorizer, extractor, one_hot]


def fitted(seed):
    """Models of scikit-learn on made-up data, with pictures of none of their classes missing."""
    from skl2onnx import to_onnx
    from sklearn import ensemble, linear_model, naive_bayes, neural_network, pipeline, preprocessing, tree as trees

    r = np.random.RandomState(seed)
    x = r.randn(200, 5).astype("f4")
    for classes in (2, 3):
        y = (x[:, :3].argmax(1) % classes) * 2
        for names in (y, np.array(["a", "b", "c"])[y // 2]):
            for model in (linear_model.LogisticRegression(), trees.DecisionTreeClassifier(max_depth=6),
                          ensemble.RandomForestClassifier(8), ensemble.GradientBoostingClassifier(n_estimators=6),
                          ensemble.ExtraTreesClassifier(5), naive_bayes.GaussianNB(),
                          neural_network.MLPClassifier((8,), max_iter=50),
                          pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
                          pipeline.make_pipeline(preprocessing.Normalizer(), linear_model.SGDClassifier(loss="log_loss"))):
                model.fit(x, names)
                yield f"{type(model).__name__} {classes} {names.dtype}", to_onnx(model, x[:1]), x[:40]
    t = x @ r.randn(5) + x[:, 0] ** 2
    for model in (linear_model.LinearRegression(), linear_model.Ridge(), ensemble.RandomForestRegressor(8),
                  ensemble.GradientBoostingRegressor(n_estimators=9), trees.DecisionTreeRegressor(),
                  ensemble.AdaBoostRegressor(n_estimators=4)):
        model.fit(x, t)
        yield type(model).__name__, to_onnx(model, x[:1]), x[:40]


def alike(a, b):
    """True: both answers are equal but for rounding."""
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(alike(p, q) for p, q in zip(a, b))
    if isinstance(b, dict):
        return isinstance(a, dict) and list(a) == list(b) and all(abs(a[k] - b[k]) <= 1e-5 * (1 + abs(b[k])) for k in b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.allclose(a, b, 1e-5, 1e-5, equal_nan=True) if b.dtype.kind == "f" else bool((a == b).all())


def sparse_nan(x, seed):
    """x with some not-a-numbers."""
    r = np.random.RandomState(seed)
    return np.where(r.rand(*x.shape) < .1, np.float32("nan"), x).astype(x.dtype) if x.dtype.kind == "f" else x


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--models", type=int, default=300)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--work")
    words.add_argument("--sklearn", action="store_true")
    args = words.parse_args()
    good, refused, bad = collections.Counter(), collections.Counter(), 0

    def drawn():
        """All drawn models."""
        for seed in range(args.seed, args.seed + args.models):
            d = Draw(seed)
            make = KINDS[seed % len(KINDS)]
            model, x = make(d), d.input()
            yield f"{make.__name__} {seed}", model, sparse_nan(x, seed) if "tree" in make.__name__ or make is imputer else x

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for name, model, x in [*drawn(), *(fitted(args.seed) if args.sklearn else [])]:
        text = model.SerializeToString()
        try:
            theirs = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
            want = theirs.run(None, {theirs.get_inputs()[0].name: x})
        except Exception as e:
            refused["ONNX Runtime: " + name.split()[0] + ": " + str(e)[:90]] += 1
            continue
        try:
            ours = cnnrun.ort.InferenceSession(text, providers=["CPUExecutionProvider"])
            got = ours.run(None, {ours.get_inputs()[0].name: x})
        except Exception as e:
            refused[name.split()[0] + ": " + str(e)[-120:]] += 1
            continue
        same = all(alike(a, b) for a, b in zip(got, want)) and len(got) == len(want)
        types = [o.type for o in ours.get_outputs()] == [o.type for o in theirs.get_outputs()]
        good[name.split()[0]] += same and types
        if not same or not types:
            bad += 1
            print(f"{name} differs:", f"{got}\n{want}" if not same else [o.type for o in ours.get_outputs()])
            if args.work:
                os.makedirs(args.work, exist_ok=True)
                open(os.path.join(args.work, name.replace(" ", "-") + ".onnx"), "wb").write(text)
    for reason, n in refused.items():
        print(f"refused {n}: {reason}")
    print(f"{sum(good.values())} alike ({', '.join(f'{k} {v}' for k, v in sorted(good.items()))}), {bad} differ")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
