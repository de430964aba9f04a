/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log of what the kernel refused. */
#ifndef POSTERN_GATEWAY_REFUSED_H
#define POSTERN_GATEWAY_REFUSED_H

#include "gateway/path/gateway.h"

/* Takes nflog (closed on failure too). 0 or -errno. */
int refused_attach(struct sandbox *sandbox, int nflog);
/* Writes what is known at once; the log lingers for a moment, for what the kernel has not handed over yet. */
void refused_detach(struct sandbox *sandbox);

#endif
