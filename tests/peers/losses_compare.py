#!/usr/bin/env python3
"""Gradients of the shipped losses (scripts/losses, and the net's own cross-entropy) against PyTorch's doubles.

    tests/peers/venv/bin/python tests/peers/losses_compare.py [BUILD]

A line a loss: the loss's relative difference, and the largest difference of a weight's gradient over that gradient's
norm. Exit 1 if one is above 1e-6, which f32 arithmetic keeps to."""
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

BOUND = 1e-6
LABELS = torch.tensor([0, 3, 4, 3, 1, 0])


def logits_of(x, w):
    """Logits of the small net."""
    return F.linear(torch.tanh(F.linear(x, w["ip1.weight"], w["ip1.bias"])), w["ip2.weight"], w["ip2.bias"])


def contrastive(scores):
    """Over all pairs, a picture with itself too; what stands below the root keeps its slope finite."""
    squares = (scores * scores).sum(1, keepdim=True)
    distance2 = torch.relu(squares + squares.T - 2 * scores @ scores.T)
    equal = (LABELS[:, None] == LABELS[None, :]).double()
    near = torch.relu(1 - torch.sqrt(distance2 + 1e-8))
    return (equal * distance2 + (1 - equal) * near * near).mean()


def distill(z, teacher, temperature=4, share=0.9):
    """Distilling, by PyTorch."""
    divergence = F.kl_div(F.log_softmax(z / temperature, 1), F.softmax(teacher / temperature, 1), reduction="batchmean")
    return share * temperature**2 * divergence + (1 - share) * F.cross_entropy(z, LABELS)


def focal(z):
    """The focal loss, by PyTorch."""
    p = F.softmax(z, 1)[torch.arange(len(LABELS)), LABELS]
    return ((1 - p) ** 2 * -p.log()).mean()


def losses(z, teacher):
    """All losses, by PyTorch."""
    scores, one_hot = F.softmax(z, 1), F.one_hot(LABELS, z.shape[1]).double()
    return {
        "cross_entropy": F.cross_entropy(z, LABELS),
        "mse": F.mse_loss(scores, one_hot),
        "binary": F.binary_cross_entropy_with_logits(z, one_hot),
        "focal": focal(z),
        "smooth": F.cross_entropy(z, LABELS, label_smoothing=0.1),
        "contrastive": contrastive(scores),
        "distill": distill(z, teacher),
    }


def read(folder, prefix, weights):
    """Weights that we wrote."""
    return {w: torch.tensor(np.load(f"{folder}/{prefix}.{w}.npy").astype(np.float64)) for w in weights}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else f"{here}/../../build"), "cnnrun")
    weights = ["ip1.weight", "ip1.bias", "ip2.weight", "ip2.bias"]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run([program, "--trust", "losses.lua", folder], cwd=here, check=True, capture_output=True, text=True).stdout
        ours = {name: float(value) for name, value in (line.split() for line in told.splitlines())}
        x = torch.tensor(np.load(f"{folder}/x.npy").astype(np.float64))
        w = {name: t.requires_grad_() for name, t in read(folder, "weight", weights).items()}
        teacher = logits_of(x, read(folder, "teacher", weights))
        for name, loss in losses(logits_of(x, w), teacher).items():
            grads = torch.autograd.grad(loss, list(w.values()), retain_graph=True)
            got = read(folder, name, weights)
            apart = max(float((got[k] - g).abs().max() / g.norm()) for k, g in zip(w, grads))
            print(f"{name:14} loss {abs(ours[name] - loss.item()) / abs(loss.item()):.1e}  gradients {apart:.1e}")
            worst = max(worst, apart)
    print(f"worst: {worst:.1e}")
    return worst > BOUND


sys.exit(main())
