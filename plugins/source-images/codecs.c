/* The second module: readers of formats whose libraries are large. */
#include "images.h"

const cnr_host *img_host;

CNR_EXPORT const img_codec *img_codecs(const cnr_host *host);
/* The readers by format; NULL where a library was not built in. */
const img_codec *img_codecs(const cnr_host *host) {
    static const img_codec codecs[IMG_CODECS] = {
#ifdef IMG_HAS_TIFF
        [IMG_TIFF] = img_read_tiff,
#endif
#ifdef IMG_HAS_WEBP
        [IMG_WEBP] = img_read_webp,
#endif
#ifdef IMG_HAS_HEIF
        [IMG_HEIF] = img_read_heif,
#endif
    };
    img_host = host;
    return codecs;
}
