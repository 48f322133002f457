/* The stored form of weights of 2 to 8 bits with one scale.
 *
 *     r = q * 2^position * scale,   position = ceil(log2(max |r| / top)),   top = 2^(bits - 1) - 1
 *
 * so that scale lies in (1/2, 1]. The header is followed by the numbers q, each `bits` bits of
 * two's complement, without gaps. The lowest bits of a byte come first; the header is
 * little-endian. */
#ifndef INT8_PACKED_H
#define INT8_PACKED_H

#include <cnnrun/tensor.h>

#include <math.h>
#include <string.h>

/* Head of an encoded tensor. */
typedef struct packed_header {
    uint32_t magic, bits;
    int32_t position;
    float scale;
    uint64_t count;
} packed_header;

#define PACKED_MAGIC 0x31495158u /* "XQI1" */
enum { PACKED_LEAST_BITS = 2, PACKED_MOST_BITS = 8 };

/* Reads the header of data that int8_encoding.check has accepted. */
static inline packed_header packed_header_of(const cnr_tensor *t) {
    packed_header head;
    memcpy(&head, t->data, sizeof head);
    return head;
}
/* Start of the numbers, packed in bits, behind the head. */
static inline const uint8_t *packed_numbers(const cnr_tensor *t) {
    return (const uint8_t *)t->data + sizeof(packed_header);
}
/* The stored number q with index i, sign included, of head->bits bits. */
static inline int32_t packed_number_at(const cnr_tensor *t, const packed_header *head, uint64_t i) {
    const uint8_t *from = packed_numbers(t);
    const uint64_t at = i * head->bits;
    uint32_t code = (uint32_t)from[at / 8] >> at % 8;
    if (at % 8 + head->bits > 8) code |= (uint32_t)from[at / 8 + 1] << (8 - at % 8);
    return (int32_t)(code << (32 - head->bits)) >> (32 - head->bits);
}
/* The real value of a stored 1: 2^position * scale. */
static inline double packed_unit(const packed_header *head) {
    return ldexp((double)head->scale, head->position);
}

#endif
