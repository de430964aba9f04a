/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules with a deadline: what is to happen when one passes, at that second. */
#ifndef POSTERN_GATEWAY_EXPIRY_H
#define POSTERN_GATEWAY_EXPIRY_H

#include "gateway/path/gateway.h"

/* While a deadline lies ahead the clock is read this often: it may have been set. */
#define EXPIRY_LOOK_MS 10000

/* The sandbox's policy is new, or another: wait for its next deadline, if there is one. */
void expiry_start(struct sandbox *sandbox);
void expiry_stop(struct sandbox *sandbox);

#endif
