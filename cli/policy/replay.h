/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy replay: which attempts on record would have another outcome under another policy. */
#ifndef POSTERN_CLI_REPLAY_H
#define POSTERN_CLI_REPLAY_H

#include "cli/policy/history.h"
#include "policy/verdict.h"

enum replay_outcome { REPLAY_SAME = 0, REPLAY_BREAKS, REPLAY_OPENS, REPLAY_LEFT_OUT };

/* Judge the row by the policy. *ret_target and *ret_judgement are written unless it is left out. */
enum replay_outcome replay_row(const struct snapshot *policy, const struct query_row *row, int64_t now_us,
    struct history_target *ret_target, struct judgement *ret_judgement);

#endif
