/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sockets that the gateway serves, made inside a sandbox's namespace. */
#ifndef POSTERN_TAP_SOCKET_H
#define POSTERN_TAP_SOCKET_H

#include "tap/tap_internal.h"

/* Make all of tap->sockets in the namespace the calling thread is in. patient: wait a moment for an address that a
 * process of an earlier run, about to end, still holds. */
int socket_make_all(struct tap *tap, bool patient, struct error *err);

#endif
