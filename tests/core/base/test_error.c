/* Errors that are longer than their room: no path and no word is cut in its middle. */
#include "base/base.h"
#include "tests/tap.h"
#include <string.h>

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    char path[600] = "/start", word[3000] = "";
    for (int i = 0; i < 25; i++) strcat(path, "/a-folder-with-a-name");
    strcat(path, "/net.cfg");
    cnri_fail(&err, CNR_E_IO, path, "%s", "can't be read");
    const size_t n = strlen(err.where);
    ok(n < sizeof err.where && strncmp(err.where, ".../a-folder", 12) == 0,
       "a long place loses whole folders in front");
    ok(strcmp(err.where + n - 8, "/net.cfg") == 0, "and keeps its end");
    cnri_fail(&err, CNR_E_IO, "net.cfg", "%s", "can't be read");
    is_text(err.where, "net.cfg", "a short one stays");
    for (int i = 0; i < 200; i++) strcat(word, "/some/path/x ");
    cnri_fail(&err, CNR_E_IO, "net.cfg", "%s", word);
    const size_t k = strlen(err.text);
    ok(k < sizeof err.text && strcmp(err.text + k - 16, "/some/path/x ...") == 0,
       "a long text ends behind a whole word");
    memset(word, 'x', sizeof word - 1);
    cnri_fail(&err, CNR_E_IO, "net.cfg", "%s", word);
    ok(strcmp(err.text + strlen(err.text) - 5, "x ...") == 0, "one without words is cut");
    return done();
}
