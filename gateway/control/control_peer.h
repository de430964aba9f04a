/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who asked: what the kernel says of the process at the other end of the control socket, and what that process says of
 * itself. */
#ifndef POSTERN_GATEWAY_CONTROL_PEER_H
#define POSTERN_GATEWAY_CONTROL_PEER_H

#include <jansson.h>
#include <stdint.h>

/* Bytes of a process's name (TASK_COMM_LEN), and of its command line that are looked at: enough for "postern allow"
 * with a few rules, and little enough for the record that it goes into. */
#define CONTROL_PEER_COMM_MAX 16
#define CONTROL_PEER_COMMAND_MAX 160
/* One byte escaped is four. */
#define CONTROL_PEER_ESCAPED(n) (4 * (n) + 1)

struct control_peer {
	uint32_t uid; /* UINT32_MAX: nobody, the daemon itself */
	int32_t pid;  /* as this process sees it; 0: unknown, or out of its sight */
	/* Free for the process to choose, and so a claim. Escaped; "" when it could not be read. */
	char comm[CONTROL_PEER_ESCAPED(CONTROL_PEER_COMM_MAX)];
	char command[CONTROL_PEER_ESCAPED(CONTROL_PEER_COMMAND_MAX)];
};

#define CONTROL_PEER_NOBODY ((struct control_peer){.uid = UINT32_MAX})

/* uid and pid of whoever connected (SO_PEERCRED). 0 or -1. */
int control_peer_read(int fd, struct control_peer *ret_peer);
/* Its name and command line, as they are now. What cannot be read stays "". */
void control_peer_look(struct control_peer *peer);
/* Adds "pid", "comm" and "command" as far as they are known. */
void control_peer_tell(const struct control_peer *peer, json_t *detail);

#endif
