/* Allocation, growable arrays, maps and interned names, with memory running out everywhere. */
#include "base/base.h"
#include "tests/tap.h"
#include <pthread.h>

/* Blocks are aligned, and keep their bytes when they grow. */
static void test_blocks(void) {
    uint8_t *block = cnri_alloc(100);
    ok(block && (uintptr_t)block % 64 == 0, "blocks are aligned to 64 bytes");
    for (int i = 0; i < 100; i++) block[i] = (uint8_t)i;
    block = cnri_resize(block, 100000);
    int kept = block && (uintptr_t)block % 64 == 0;
    for (int i = 0; kept && i < 100; i++) kept = block[i] == i;
    ok(kept, "growing keeps contents and alignment");
    block = cnri_resize(block, 10);
    kept = block != NULL;
    for (int i = 0; kept && i < 10; i++) kept = block[i] == i;
    ok(kept, "shrinking keeps what is left");
    cnri_free(block);
    cnri_free(NULL);
    uint8_t *zero = cnri_alloc_zero(1000);
    int all = zero != NULL;
    for (int i = 0; all && i < 1000; i++) all = zero[i] == 0;
    ok(all, "alloc_zero clears");
    cnri_free(zero);
    ok(cnri_alloc(SIZE_MAX) == NULL && cnri_alloc(SIZE_MAX - 64) == NULL,
       "absurd sizes are refused");
    void *none = cnri_alloc(0);
    ok(none != NULL, "an empty block is a block");
    cnri_free(none);
    ok(cnri_strdup(NULL) == NULL, "no text, no copy");
}

/* An allocation that is to fail fails, and is counted. */
static void test_failure(void) {
    const int64_t before = cnri_alloc_count();
    cnri_alloc_fail_at(2);
    void *first = cnri_alloc(8), *second = cnri_alloc(8), *third = cnri_alloc_zero(8);
    cnri_alloc_fail_at(0);
    void *fourth = cnri_alloc(8);
    ok(first && !second && !third && fourth, "the second allocation fails and all after it");
    is_int(cnri_alloc_count() - before, 4, "every attempt is counted");
    char *text = cnri_strdup("kept");
    cnri_alloc_fail_at(1);
    ok(cnri_resize(text, 1000) == NULL && strcmp(text, "kept") == 0,
       "a resize that fails leaves the block alone");
    cnri_alloc_fail_at(0);
    cnri_free(first);
    cnri_free(fourth);
    cnri_free(text);
}

/* Products that overflow are told. */
static void test_overflow(void) {
    bool overflow = false;
    is_int((long long)cnri_mul(6, 7, &overflow), 42, "a product");
    ok(!overflow, "did not overflow");
    cnri_mul(SIZE_MAX / 2, 3, &overflow);
    ok(overflow, "a product too large says so");
}

/* A list keeps its elements as it grows, and new ones are zero. */
static void test_vec(void) {
    CNRI_VEC(int) v = {0};
    int good = 1;
    for (int i = 0; i < 1000; i++) {
        int *slot = cnri_push(&v);
        good &= slot && *slot == 0;
        if (slot) *slot = i;
    }
    for (int i = 0; i < 1000; i++) good &= v.at[i] == i;
    ok(good && v.n == 1000, "a vector holds what was pushed, in order, zeroed first");
    cnri_alloc_fail_at(1);
    int32_t n = v.n;
    while (cnri_push(&v)) n++;
    cnri_alloc_fail_at(0);
    ok(v.n == n && v.at[999] == 999, "a push without memory changes nothing");
    cnri_vec_free(&v);
    ok(v.at == NULL && v.n == 0, "freed");
}

/* A map finds what was put into it, after growing, too. */
static void test_map(void) {
    cnri_map map = {0};
    char key[32];
    int good = 1;
    ok(cnri_map_get(&map, "x") == NULL, "an empty map holds nothing");
    for (intptr_t i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "key %d", (int)i);
        good &= cnri_map_set(&map, key, (void *)(i + 1)) == CNR_OK;
    }
    for (intptr_t i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "key %d", (int)i);
        good &= cnri_map_get(&map, key) == (void *)(i + 1);
    }
    ok(good && map.n == 500, "500 keys are found again");
    cnri_map_set(&map, "key 7", &map);
    ok(cnri_map_get(&map, "key 7") == &map && map.n == 500, "setting replaces");
    ok(cnri_map_get(&map, "key 500") == NULL, "what is not there is not found");
    cnri_map_free(&map);
}

/* A map that lacks memory says so, and stays whole. */
static void test_map_without_memory(void) {
    int64_t n = 1;
    for (;; n++) {
        cnri_map map = {0};
        cnr_status status = CNR_OK;
        char key[16];
        cnri_alloc_fail_at(n);
        for (int i = 0; i < 20 && status == CNR_OK; i++) {
            snprintf(key, sizeof key, "k%d", i);
            status = cnri_map_set(&map, key, &map);
        }
        cnri_alloc_fail_at(0);
        const int32_t held = map.n;
        int good = 1;
        for (int i = 0; i < held; i++) {
            snprintf(key, sizeof key, "k%d", i);
            good &= cnri_map_get(&map, key) == &map;
        }
        cnri_map_free(&map);
        if (!good || (status != CNR_OK && status != CNR_E_MEMORY)) break;
        if (status == CNR_OK) break;
    }
    ok(n > 20, "a map survives memory running out at any of %d allocations", (int)n);
}

/* Thread: interns 200 names. */
static void *intern_many(void *out) {
    cnr_id *ids = out;
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "shared %d", i);
        ids[i] = cnri_intern(name);
    }
    return NULL;
}

/* Equal names have the same number, different ones others. */
static void test_intern(void) {
    const cnr_id a = cnri_intern("alpha"), b = cnri_intern("beta");
    ok(a && b && a != b, "different names get different ids");
    char copy[] = "alpha";
    is_int(cnri_intern(copy), a, "equal names get equal ids");
    is_text(cnri_name(a), "alpha", "an id tells its name");
    is_text(cnri_name(0), "", "0 is no name");
    is_text(cnri_name(99999), "", "an unknown id is no name");
    ok(cnri_intern("") == 0 && cnri_intern(NULL) == 0, "no name is 0");
    cnri_alloc_fail_at(1);
    const cnr_id lost = cnri_intern("gamma");
    cnri_alloc_fail_at(0);
    ok(lost == 0 && cnri_intern("gamma") != 0, "no memory is 0, and later the name works");

    static cnr_id ids[4][200];
    pthread_t threads[4];
    for (int t = 0; t < 4; t++) pthread_create(&threads[t], NULL, intern_many, ids[t]);
    for (int t = 0; t < 4; t++) pthread_join(threads[t], NULL);
    int same = 1;
    for (int t = 1; t < 4; t++) same &= memcmp(ids[0], ids[t], sizeof ids[0]) == 0;
    ok(same, "four threads agree on ids");
}

int main(void) {
    test_blocks();
    test_failure();
    test_overflow();
    test_vec();
    test_map();
    test_map_without_memory();
    test_intern();
    return done();
}
