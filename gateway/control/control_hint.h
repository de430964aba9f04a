/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a refused name just misses: most often a policy says nearly the right thing. */
#ifndef POSTERN_GATEWAY_CONTROL_HINT_H
#define POSTERN_GATEWAY_CONTROL_HINT_H

#include "policy/compiled/snapshot.h"

/* Two rules' worth of text and a sentence. */
#define CONTROL_HINT_MAX (2 * RULE_TEXT_MAX)

/* About a name and port that no rule allows. "" when nothing comes near. */
const char *control_hint(const struct snapshot *snapshot, const struct name *name, uint8_t proto, uint16_t port,
    int64_t now_us, char ret_text[CONTROL_HINT_MAX]);

#endif
