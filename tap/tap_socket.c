/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All of them are transparent: the ruleset accepts packets for transparent sockets only, IPv6 replies from an address
 * that is not the device's need it, and the transparent listeners could not be reached otherwise. */
#include "tap/netns.h"
#include "tap/tap_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Connections that wait while the gateway is busy or restarts. */
#define SOCKET_BACKLOG 1024
/* Room for datagrams while the gateway is busy. */
#define SOCKET_UDP_BUFFER (1024 * 1024)
/* Room for refused packets, about 4,000. When it overflows the gateway learns so (ENOBUFS) and counts by counters. */
#define SOCKET_NFLOG_BUFFER (1024 * 1024)
/* The kernel hands a batch of refused packets over after this many hundredths of a second, or this many packets. */
#define SOCKET_NFLOG_FLUSH_CS 2
#define SOCKET_NFLOG_THRESHOLD 64
/* An address still in use after an adopt: tries, and pause between them. */
#define SOCKET_TRIES 40
#define SOCKET_PAUSE_MS 25

struct socket_row {
	const char *what;
	int family;
	int type; /* SOCK_STREAM, SOCK_DGRAM */
	uint16_t port;
	bool loopback; /* bound to the loopback address, else to any */
};

static const struct socket_row socket_rows[] = {
    [TAP_SOCKET_DNS_UDP4] = {"DNS over UDP, IPv4", AF_INET, SOCK_DGRAM, 53, false},
    [TAP_SOCKET_DNS_UDP6] = {"DNS over UDP, IPv6", AF_INET6, SOCK_DGRAM, 53, false},
    [TAP_SOCKET_DNS_TCP4] = {"DNS over TCP, IPv4", AF_INET, SOCK_STREAM, 53, false},
    [TAP_SOCKET_DNS_TCP6] = {"DNS over TCP, IPv6", AF_INET6, SOCK_STREAM, 53, false},
    [TAP_SOCKET_TCP4] = {"transparent listener, IPv4", AF_INET, SOCK_STREAM, TAP_TPROXY_PORT, true},
    [TAP_SOCKET_TCP6] = {"transparent listener, IPv6", AF_INET6, SOCK_STREAM, TAP_TPROXY_PORT, true},
};
static_assert(sizeof(socket_rows) / sizeof(socket_rows[0]) == TAP_SOCKET_NFLOG, "one row per IP socket");

/* Turns an option on. */
static int
socket_option(int fd, int level, int option)
{
	int on = 1;

	return setsockopt(fd, level, option, &on, sizeof(on));
}

/* Beyond net.core.rmem_max where we may; as far as it goes otherwise. */
static void
socket_buffer(int fd, int size)
{
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

/* Makes, configures and binds a socket of the calling thread's namespace. Returns the descriptor or -errno. */
static int
socket_make(const struct socket_row *row)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(row->port)};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(row->port)};
	bool v6 = row->family == AF_INET6, stream = row->type == SOCK_STREAM;
	int fd = socket(row->family, row->type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	if (row->loopback) {
		sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		sin6.sin6_addr = in6addr_loopback;
	}
	if (!stream)
		socket_buffer(fd, SOCKET_UDP_BUFFER);
	/* SO_REUSEADDR on UDP would let two sockets share a port, and the newer steal from the older. */
	if ((v6 ? socket_option(fd, IPPROTO_IPV6, IPV6_TRANSPARENT) : socket_option(fd, IPPROTO_IP, IP_TRANSPARENT)) <
		0 ||
	    (v6 && socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0) ||
	    (stream && socket_option(fd, SOL_SOCKET, SO_REUSEADDR) < 0) ||
	    (!stream && v6 && socket_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) < 0) ||
	    (!stream && !v6 && socket_option(fd, IPPROTO_IP, IP_PKTINFO) < 0) ||
	    bind(fd, v6 ? (struct sockaddr *)&sin6 : (struct sockaddr *)&sin, v6 ? sizeof(sin6) : sizeof(sin)) < 0 ||
	    (stream && listen(fd, SOCKET_BACKLOG) < 0)) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

/* One nfnetlink_log configuration message with one attribute. */
static int
socket_nflog_set(int fd, uint16_t attr, const void *value, size_t len)
{
	char bytes[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bytes);
	struct nfgenmsg *nfg;
	ssize_t got;

	nlh->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(TAP_LOG_GROUP);
	mnl_attr_put(nlh, attr, len, value);
	if (send(fd, bytes, nlh->nlmsg_len, 0) < 0)
		return -errno;
	/* After the bind, refused packets may come before the acknowledgement. */
	while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
		nlh = (struct nlmsghdr *)(void *)bytes;
		if ((size_t)got >= sizeof(*nlh) + sizeof(struct nlmsgerr) && nlh->nlmsg_type == NLMSG_ERROR)
			return ((struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
	}
	return got < 0 ? -errno : -EBADMSG;
}

/* The log socket: bound to the group, with how much of a packet comes and when. Returns the descriptor or -errno. */
static int
socket_make_nflog(void)
{
	struct nfulnl_msg_config_cmd bind_cmd = {.command = NFULNL_CFG_CMD_BIND};
	struct nfulnl_msg_config_mode mode = {.copy_mode = NFULNL_COPY_PACKET, .copy_range = htonl(TAP_LOG_SNAPLEN)};
	uint32_t timeout = htonl(SOCKET_NFLOG_FLUSH_CS), threshold = htonl(SOCKET_NFLOG_THRESHOLD);
	uint16_t flags = htons(NFULNL_CFG_F_SEQ);
	const struct {
		uint16_t attr;
		const void *value;
		size_t len;
	} settings[] = {
	    {NFULA_CFG_CMD, &bind_cmd, sizeof(bind_cmd)},
	    {NFULA_CFG_MODE, &mode, sizeof(mode)},
	    {NFULA_CFG_TIMEOUT, &timeout, sizeof(timeout)},
	    {NFULA_CFG_QTHRESH, &threshold, sizeof(threshold)},
	    {NFULA_CFG_FLAGS, &flags, sizeof(flags)},
	};
	/* Blocking while it is configured, non-blocking for the gateway. */
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), r = 0;

	if (fd < 0)
		return -errno;
	socket_buffer(fd, SOCKET_NFLOG_BUFFER);
	for (size_t i = 0; r == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		r = socket_nflog_set(fd, settings[i].attr, settings[i].value, settings[i].len);
	if (r == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* Makes a socket (row NULL: that of the log); tries again while its address is in use. */
static int
socket_make_patiently(const struct socket_row *row, int tries)
{
	static const struct timespec pause = {.tv_nsec = SOCKET_PAUSE_MS * 1000000L};
	int fd;

	for (;;) {
		fd = row == NULL ? socket_make_nflog() : socket_make(row);
		/* EPERM is what nfnetlink_log says of a group that has another listener. */
		if ((fd != -EADDRINUSE && fd != (row == NULL ? -EPERM : -EADDRINUSE)) || --tries <= 0)
			return fd;
		nanosleep(&pause, NULL);
	}
}

int
tap_socket_make_all(struct tap *tap, bool patient, struct error *err)
{
	int tries = patient ? SOCKET_TRIES : 1, fd;

	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++) {
		const struct socket_row *row = i == TAP_SOCKET_NFLOG ? NULL : &socket_rows[i];

		if (tap_step(err) < 0)
			return -1;
		fd = socket_make_patiently(row, tries);
		if (fd < 0)
			return error_sys(
			    err, -fd, "%s", row == NULL ? "log socket (kernel module nfnetlink_log)" : row->what);
		tap->sockets[i] = fd;
	}
	return 0;
}

int
tap_socket_udp(const struct tap *tap, int family, uint16_t port, struct error *err)
{
	struct socket_row row = {"UDP relay", family == 4 ? AF_INET : AF_INET6, SOCK_DGRAM, port, false};
	struct netns_visit visit;
	int fd;

	if (port == 0 || port == 53 || (family != 4 && family != 6))
		return error_set(err, ERROR_CORRUPT, "UDP relay socket for port %u", port);
	if (netns_enter(&visit, tap->netns_fd, err) < 0)
		return -1;
	fd = socket_make(&row);
	netns_leave(&visit);
	if (fd < 0)
		return error_sys(err, -fd, "UDP relay socket for port %u", port);
	return fd;
}
