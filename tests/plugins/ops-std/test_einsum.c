/* einsum: equations of all forms by hand and against matmul; splits; refusals. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

int main(void) {
    cnr_tensor *y[1], *z[1];
    op_open();
    cnr_tensor *m = t_of(CNR_f32, "2x3", (double[]){1, 2, 3, 4, 5, 6});
    cnr_tensor *square = t_of(CNR_f64, "2x2", (double[]){1, 2, 3, 4});
    op_call("einsum", "equation=ij->ji", y, 1, 1, m);
    t_near(y[0], (double[]){1, 4, 2, 5, 3, 6}, 0, "transposed");
    op_call("einsum", "equation=ji", y, 1, 1, m);
    t_near(y[0], (double[]){1, 4, 2, 5, 3, 6}, 0, "without an arrow: in the alphabet's order");
    op_call("einsum", "equation=ab, b -> a", y, 1, 2, m, t_of(CNR_f32, "3", (double[]){1, 0, 2}));
    t_near(y[0], (double[]){7, 16}, 0, "a matrix by a vector");
    op_call("einsum", "equation=ii->", y, 1, 1, square);
    t_near(y[0], (double[]){5}, 0, "a trace");
    t_shape(y[0], "", "its shape");
    op_call("einsum", "equation=ii->i", y, 1, 1, square);
    t_near(y[0], (double[]){1, 4}, 0, "a diagonal");
    op_call("einsum", "equation=i,j,k->kj", y, 1, 3, t_of(CNR_i64, "2", (double[]){1, 2}),
            t_of(CNR_i64, "2", (double[]){1, 10}), t_of(CNR_i64, "2", (double[]){3, 5}));
    t_near(y[0], (double[]){9, 90, 15, 150}, 0, "three operands, whole numbers");
    op_call("einsum", "equation=...i->...", y, 1, 1, t_type(CNR_f32, "2x0"));
    t_near(y[0], (double[]){0, 0}, 0, "a sum of nothing");

    cnr_tensor *a = t_random(CNR_f64, "2x3x4x5", 1), *b = t_random(CNR_f64, "3x5x6", 2);
    op_call("matmul", "", z, 1, 2, a, b);
    op_call("einsum", "equation=...ij,...jk->...ik", y, 1, 2, a, b);
    t_same(y[0], z[0], 1e-12, "dots broadcast: matmul");
    op_call("einsum", "equation=b...,...c->c...b", y, 1, 2, t_of(CNR_f32, "2", (double[]){1, 2}),
            m);
    t_near(y[0], (double[]){1, 2, 4, 8, 2, 4, 5, 10, 3, 6, 6, 12}, 0, "dots for no and one axis");
    op_splitcheck("einsum", "equation=...ij,...jk->k...i", 2, IN(a, b));
    op_splitcheck("einsum", "equation=bhii,bh->bi", 2,
                  IN(t_random(CNR_f64, "2x3x4x4", 3), t_random(CNR_f64, "2x3", 4)));

    op_refused("einsum", "equation=ij->k", "no operand has", 1, IN(m));
    op_refused("einsum", "equation=ij->ii", "twice", 1, IN(m));
    op_refused("einsum", "equation=ij,jk->ik", "elsewhere", 2, IN(m, m));
    op_refused("einsum", "equation=i->i", "rank 2 has 1 labels", 1, IN(m));
    op_refused("einsum", "equation=ij->ji!", "letter", 1, IN(m));
    op_refused("einsum", "equation=ij,ij", "goes on", 1, IN(m));
    op_refused("einsum", "equation=ij", "fewer terms", 2, IN(m, m));
    op_refused("einsum", "equation=......ij", "letter", 1, IN(m));
    return op_done();
}
