/* Rates by policy, against what the policies' makers give as their formulas. */
#include "train/train.h"
#include "tap.h"
#include <math.h>

static bool near(double a, double b) { return fabs(a - b) <= 1e-12; }

static bool refused(cnri_train_options o) { return cnri_rate_check(&o, NULL) == CNR_E_ARG; }

int main(void) {
    cnri_train_options o = {.rate = 0.5, .epochs = 12};
    const int64_t steps = 1200;
    ok(near(cnri_rate_at(&o, 700, steps), 0.5), "fixed");
    o.policy = CNRI_RATE_INVERSE;
    ok(near(cnri_rate_at(&o, 700, steps), 0.5 * pow(1.07, -0.75)), "inverse");
    o.gamma = 0.01;
    o.power = 2;
    ok(near(cnri_rate_at(&o, 100, steps), 0.125), "with gamma and power");
    o.policy = CNRI_RATE_POLY;
    ok(near(cnri_rate_at(&o, 600, steps), 0.125), "poly");
    o.power = 0;
    ok(near(cnri_rate_at(&o, 300, steps), 0.375), "straight when nothing is said");
    o.policy = CNRI_RATE_COSINE;
    ok(near(cnri_rate_at(&o, 600, steps), 0.25) && near(cnri_rate_at(&o, 1200, steps), 0),
       "cosine");
    o.gamma = 0;
    o.policy = CNRI_RATE_STEP;
    ok(near(cnri_rate_at(&o, 399, steps), 0.5) && near(cnri_rate_at(&o, 400, steps), 0.05),
       "step: a tenth after each third");
    o.rate_epochs = "2";
    o.gamma = 0.5;
    ok(near(cnri_rate_at(&o, 199, steps), 0.5) && near(cnri_rate_at(&o, 500, steps), 0.125),
       "or each two epochs");
    o.policy = CNRI_RATE_MULTISTEP;
    o.rate_epochs = "1,1.5,10";
    ok(near(cnri_rate_at(&o, 99, steps), 0.5) && near(cnri_rate_at(&o, 149, steps), 0.25) &&
           near(cnri_rate_at(&o, 150, steps), 0.125) && near(cnri_rate_at(&o, 1100, steps), 0.0625),
       "multistep");
    o.rate_epochs = NULL;
    ok(near(cnri_rate_at(&o, 599, steps), 0.5) && near(cnri_rate_at(&o, 900, steps), 0.125),
       "at half and three quarters when nothing is said");
    o.rate_epochs = "3,2";
    ok(refused(o), "epochs that fall are refused");
    o.rate_epochs = "3;4";
    ok(refused(o), "what is no list is");
    o.rate_epochs = "3,4";
    ok(!refused(o), "a list is none");
    o.policy = CNRI_RATE_STEP;
    ok(refused(o), "but step wants one number");
    return done();
}
