/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Log messages of nfnetlink_log as a netlink datagram, and the guest's packet inside as bytes of its own. */
#include "gateway/path/refused/nflog.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
nflog_fuzz_handler(const struct nflog_packet *packet, void *context)
{
	size_t *count = context;

	if ((unsigned int)packet->class >= TAP_COUNTER_MAX || (!packet->ip && packet->dport != 0))
		abort();
	(*count)++;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct nflog_packet packet = {0};
	size_t count = 0;
	void *aligned;

	nflog_read_ip(bytes, len, &packet);
	aligned =
	    malloc(len == 0 ? 1 : len); /* aligned, and of the exact size, so that a sanitizer sees one byte too far */
	if (aligned == NULL)
		return 0;
	memcpy(aligned, bytes, len);
	if (nflog_each(aligned, len, nflog_fuzz_handler, &count) != count)
		abort();
	free(aligned);
	return 0;
}
