/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel keeps the pid of the process that connected, not of the one that writes: a connection that was handed on,
 * or whose maker is gone and whose pid was used again, names another process. (SO_PEERPIDFD closes that, from Linux 6.5
 * on.) A client that waits for its answer is still there when this looks. */
#include "gateway/control/control_peer.h"

#include "base/escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int
control_peer_read(int fd, struct control_peer *ret_peer)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return -1;
	*ret_peer = (struct control_peer){.uid = peer.uid, .pid = peer.pid};
	return 0;
}

/* The beginning of /proc/PID/what. Returns its length; 0 when there is none. */
static size_t
peer_file(int32_t pid, const char *what, char *ret_bytes, size_t size)
{
	char path[48];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return 0;
	len = read(fd, ret_bytes, size);
	close(fd);
	return len < 0 ? 0 : (size_t)len;
}

void
control_peer_look(struct control_peer *peer)
{
	char comm[CONTROL_PEER_COMM_MAX], command[CONTROL_PEER_COMMAND_MAX];
	size_t comm_len, command_len;

	if (peer->pid <= 0)
		return;
	comm_len = peer_file(peer->pid, "comm", comm, sizeof(comm));
	if (comm_len > 0 && comm[comm_len - 1] == '\n')
		comm_len--;
	escape_terminal(comm, comm_len, peer->comm, sizeof(peer->comm));
	command_len = peer_file(peer->pid, "cmdline", command, sizeof(command));
	/* A NUL ends each argument. */
	while (command_len > 0 && command[command_len - 1] == '\0')
		command_len--;
	for (size_t i = 0; i < command_len; i++)
		if (command[i] == '\0')
			command[i] = ' ';
	escape_terminal(command, command_len, peer->command, sizeof(peer->command));
}

void
control_peer_tell(const struct control_peer *peer, json_t *detail)
{
	if (peer->pid > 0)
		json_object_set_new(detail, "pid", json_integer(peer->pid));
	if (peer->comm[0] != '\0')
		json_object_set_new(detail, "comm", json_string(peer->comm));
	if (peer->command[0] != '\0')
		json_object_set_new(detail, "command", json_string(peer->command));
}
