/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. c-ares carries our messages: it sends them, retries, goes over to TCP when the answer was cut
 * short, drops what does not match, and tries the next resolver when one fails. It does not build or read any message
 * for us.
 *
 * c-ares 1.18 keeps one UDP socket per channel and server while the channel has queries under way. One channel for all
 * would mean one source port for all, which an off-path attacker guesses along with the 16-bit id. So queries are
 * spread over a fixed pool of channels, idle ones first: an idle channel has closed its sockets, and its next query
 * gets a fresh port (CASES C-23). On a busy host a channel that served DNS_UPSTREAM_RENEW queries without a pause is
 * left alone until it is idle, as long as there is another. The pool is made before the process is confined; nothing is
 * opened later but sockets.
 *
 * c-ares asks the first resolver first, each time anew: while that one is silent, every query would lose the time of a
 * try. So the one that answers in its place becomes the first, until it is silent in turn.
 *
 * A job is c-ares' view of one query: it lives until c-ares calls back, also when its requester has gone. The callback
 * may come out of ares_send itself, when the network is down; then the handler is put off to the end of the round.
 *
 * What c-ares asks of the kernel, over UDP and TCP. It looks for files and for other families of sockets that it can do
 * without, so those are refused and do not end the process.
 * syscalls: socket(AF_INET,SOCK_DGRAM,0) socket(AF_INET6,SOCK_DGRAM,0) socket(AF_INET,SOCK_STREAM,0)
 * syscalls: socket(AF_INET6,SOCK_STREAM,0) fcntl(F_GETFL) fcntl(F_SETFL) fcntl(F_SETFD)
 * syscalls: connect sendto recvfrom writev setsockopt(SOL_TCP,TCP_NODELAY)
 * syscalls: socket(AF_NETLINK)=EACCES socket(AF_UNIX)=EACCES
 * syscalls: openat=ENOENT open=ENOENT stat=ENOENT access=ENOENT readlink=ENOENT */
#include "gateway/path/dns/dns_upstream.h"

#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/time.h>

struct dns_channel {
	struct dns_upstream *upstream;
	ares_channel ares;
	struct loop_timer timer;
	LIST_HEAD(, dns_upstream_job) jobs;
	size_t job_count;
	unsigned int served; /* since it was idle */
	size_t first;        /* resolver that c-ares asks first; see struct dns_upstream */
};

struct dns_upstream {
	struct loop *loop;
	size_t job_count;
	bool closing;
	struct options_resolver resolvers[OPTIONS_RESOLVERS_MAX];
	size_t resolver_count;
	size_t first; /* resolver that answered last when another one was silent */
	struct dns_channel udp[DNS_UPSTREAM_CHANNELS];
	struct dns_channel tcp;
	struct dns_socket *sockets;
};

/* A socket of c-ares that we watch for it. */
struct dns_socket {
	struct dns_socket *next;
	struct loop_source source;
	struct loop_deferred deferred;
	struct dns_channel *channel;
};

struct dns_upstream_job {
	LIST_ENTRY(dns_upstream_job) next;
	struct dns_channel *channel;
	struct dns_upstream_request *request; /* NULL: cancelled */
	struct loop_deferred deferred;
	bool sending; /* ares_send has not returned yet */
	enum dns_upstream_status status;
	size_t query_len;
	uint8_t query[DNS_QUERY_MAX];
};

/* Arm the timer for c-ares' next retry or give-up. */
static void
channel_set_timer(struct dns_channel *channel)
{
	struct loop *loop = channel->upstream->loop;
	struct timeval tv, *next = ares_timeout(channel->ares, NULL, &tv);

	if (next == NULL)
		loop_timer_stop(loop, &channel->timer);
	else
		loop_timer_set(loop, &channel->timer, (int64_t)next->tv_sec * 1000 + (next->tv_usec + 999) / 1000);
}

/* Lets c-ares retry or give up. */
static void
channel_timer_handler(struct loop_timer *timer)
{
	struct dns_channel *channel = loop_owner(timer, struct dns_channel, timer);

	ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	channel_set_timer(channel);
}

/* Lets c-ares read and write its socket. */
static void
socket_handler(struct loop_source *source, uint32_t events)
{
	struct dns_socket *socket = loop_owner(source, struct dns_socket, source);
	struct dns_channel *channel = socket->channel;
	ares_socket_t fd = source->fd;
	bool failed = (events & (EPOLLERR | EPOLLHUP)) != 0;

	ares_process_fd(channel->ares, (events & EPOLLIN) != 0 || failed ? fd : ARES_SOCKET_BAD,
	    (events & EPOLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
	channel_set_timer(channel);
}

/* Frees the source at the end of the round. */
static void
socket_free_deferred(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct dns_socket, deferred));
}

/* Watches the socket no longer; c-ares closes it. */
static void
socket_forget(struct dns_upstream *upstream, struct dns_socket **at)
{
	struct dns_socket *socket = *at;

	*at = socket->next;
	loop_source_remove(upstream->loop, &socket->source);
	socket->deferred.handler = socket_free_deferred;
	loop_defer(upstream->loop, &socket->deferred);
}

/* c-ares tells which events it wants of a socket; none: it is about to close it. A socket that cannot be watched makes
 * its queries time out. */
static void
socket_state_callback(void *data, ares_socket_t fd, int readable, int writable)
{
	struct dns_channel *channel = data;
	struct dns_upstream *upstream = channel->upstream;
	uint32_t events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u);
	struct dns_socket **at = &upstream->sockets, *socket;

	while (*at != NULL && (*at)->source.fd != fd)
		at = &(*at)->next;
	if (*at != NULL && events == 0)
		socket_forget(upstream, at);
	else if (*at != NULL)
		loop_source_set(upstream->loop, &(*at)->source, events);
	if (*at != NULL || events == 0)
		return;
	socket = calloc(1, sizeof(*socket));
	if (socket == NULL)
		return;
	socket->channel = channel;
	socket->source.fd = fd;
	socket->source.handler = socket_handler;
	if (loop_source_add(upstream->loop, &socket->source, events) < 0) {
		free(socket);
		return;
	}
	socket->next = upstream->sockets;
	upstream->sockets = socket;
}

/* The servers as c-ares takes them, the presently first one in front. Ports are in host order there. */
static int
channel_set_servers(struct dns_channel *channel)
{
	const struct dns_upstream *upstream = channel->upstream;
	struct ares_addr_port_node nodes[OPTIONS_RESOLVERS_MAX];
	size_t count = upstream->resolver_count;

	memset(nodes, 0, sizeof(nodes));
	for (size_t i = 0; i < count; i++) {
		const struct options_resolver *resolver = &upstream->resolvers[(upstream->first + i) % count];

		nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
		nodes[i].family = resolver->addr.family == 4 ? AF_INET : AF_INET6;
		memcpy(&nodes[i].addr, resolver->addr.bytes, resolver->addr.family == 4 ? 4 : 16);
		nodes[i].udp_port = nodes[i].tcp_port = resolver->port;
	}
	channel->first = upstream->first;
	return ares_set_servers_ports(channel->ares, nodes) == ARES_SUCCESS ? 0 : -EINVAL;
}

/* Every option is given, so that c-ares has nothing left to look up in resolv.conf or the environment. */
static int
channel_open(struct dns_channel *channel, struct dns_upstream *upstream, bool tcp)
{
	static char lookups[] = "b";
	struct in_addr nowhere = {.s_addr = htonl(INADDR_LOOPBACK)};
	struct ares_options options;
	const int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_UDP_PORT |
	    ARES_OPT_TCP_PORT | ARES_OPT_SERVERS | ARES_OPT_DOMAINS | ARES_OPT_LOOKUPS | ARES_OPT_SORTLIST |
	    ARES_OPT_NOROTATE | ARES_OPT_EDNSPSZ | ARES_OPT_SOCK_STATE_CB;
	int rc;

	memset(&options, 0, sizeof(options));
	/* EDNS: answers up to ednspsz are taken over UDP, and a server that does not know EDNS is asked without (c-ares
	 * then cuts our OPT record, which is why it is the last thing in the message and has no options). */
	options.flags = ARES_FLAG_EDNS | ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | (tcp ? ARES_FLAG_USEVC : 0);
	options.timeout = DNS_UPSTREAM_TIMEOUT_MS;
	options.tries = DNS_UPSTREAM_TRIES;
	options.ndots = 1;
	options.udp_port = options.tcp_port = 53;
	options.servers = &nowhere; /* until channel_set_servers */
	options.nservers = 1;
	options.lookups = lookups;
	options.ednspsz = DNS_UDP_MAX;
	options.sock_state_cb = socket_state_callback;
	options.sock_state_cb_data = channel;
	channel->upstream = upstream;
	channel->timer.handler = channel_timer_handler;
	if (ares_init_options(&channel->ares, &options, mask) != ARES_SUCCESS) {
		channel->ares = NULL;
		return -ENOMEM;
	}
	rc = channel_set_servers(channel);
	return rc;
}

/* Ends the channel and all of its jobs. */
static void
channel_close(struct dns_channel *channel)
{
	if (channel->ares == NULL)
		return;
	loop_timer_stop(channel->upstream->loop, &channel->timer);
	ares_destroy(channel->ares); /* calls back for every job left */
}

int
dns_upstream_new(
    struct loop *loop, const struct options_resolver *resolvers, size_t count, struct dns_upstream **ret_upstream)
{
	struct dns_upstream *upstream;
	int rc;

	if (count == 0 || count > OPTIONS_RESOLVERS_MAX)
		return -EINVAL;
	upstream = calloc(1, sizeof(*upstream));
	if (upstream == NULL)
		return -ENOMEM;
	upstream->loop = loop;
	memcpy(upstream->resolvers, resolvers, count * sizeof(*resolvers));
	upstream->resolver_count = count;
	rc = channel_open(&upstream->tcp, upstream, true);
	for (size_t i = 0; rc == 0 && i < DNS_UPSTREAM_CHANNELS; i++)
		rc = channel_open(&upstream->udp[i], upstream, false);
	if (rc < 0) {
		dns_upstream_free(upstream);
		return rc;
	}
	*ret_upstream = upstream;
	return 0;
}

void
dns_upstream_free(struct dns_upstream *upstream)
{
	if (upstream == NULL)
		return;
	upstream->closing = true;
	channel_close(&upstream->tcp);
	for (size_t i = 0; i < DNS_UPSTREAM_CHANNELS; i++)
		channel_close(&upstream->udp[i]);
	while (upstream->sockets != NULL)
		socket_forget(upstream, &upstream->sockets);
	free(upstream);
}

/* What c-ares' status means to the requester. */
static enum dns_upstream_status
status_of(int ares_status)
{
	switch (ares_status) {
	case ARES_SUCCESS:
		return DNS_UPSTREAM_OK;
	case ARES_EFORMERR:
	case ARES_ESERVFAIL:
	case ARES_ENOTIMP:
	case ARES_EREFUSED:
	case ARES_ECONNREFUSED: /* also after an error code from the last resolver: c-ares 1.18 does not tell them apart
				 */
		return DNS_UPSTREAM_REFUSED;
	case ARES_ETIMEOUT:
		return DNS_UPSTREAM_NETWORK;
	default:
		return DNS_UPSTREAM_ERROR;
	}
}

/* Give the job's outcome to its requester, if there still is one, and free the job. */
static void
job_finish(struct dns_upstream_job *job, const uint8_t *bytes, size_t len)
{
	struct dns_upstream_request *request = job->request;

	if (request != NULL) {
		request->job = NULL;
		request->handler(request, job->status, job->query, job->query_len, bytes, len);
	}
	free(job);
}

/* Tells the requester of a job that ended inside ares_send, and frees it. */
static void
job_finish_deferred(struct loop_deferred *deferred)
{
	job_finish(loop_owner(deferred, struct dns_upstream_job, deferred), NULL, 0);
}

/* Takes the job off its channel, which may be idle then. */
static void
job_unlink(struct dns_upstream_job *job)
{
	struct dns_channel *channel = job->channel;

	LIST_REMOVE(job, next);
	channel->upstream->job_count--;
	if (--channel->job_count == 0)
		channel->served = 0; /* c-ares closes the sockets of a channel without queries */
}

/* c-ares is done with a query; called exactly once for each. */
static void
job_callback(void *arg, int ares_status, int timeouts, unsigned char *bytes, int len)
{
	struct dns_upstream_job *job = arg;
	struct dns_upstream *upstream = job->channel->upstream;

	job_unlink(job);
	job->status = status_of(ares_status);
	/* As many resolvers as timed out were silent; the next one has answered. */
	if (job->status == DNS_UPSTREAM_OK && timeouts > 0 && job->channel->first == upstream->first)
		upstream->first = (upstream->first + (size_t)timeouts) % upstream->resolver_count;
	if (job->status == DNS_UPSTREAM_OK && (bytes == NULL || len < 0))
		job->status = DNS_UPSTREAM_ERROR;
	if (upstream->closing && job->request != NULL) {
		job->request->job = NULL;
		job->request = NULL;
	}
	if (job->sending) {
		/* Out of ares_send: nothing was sent, so there is no answer that the put-off handler would miss. */
		if (job->status == DNS_UPSTREAM_OK)
			job->status = DNS_UPSTREAM_ERROR;
		job->deferred.handler = job_finish_deferred;
		loop_defer(upstream->loop, &job->deferred);
		return;
	}
	job_finish(
	    job, job->status == DNS_UPSTREAM_OK ? bytes : NULL, job->status == DNS_UPSTREAM_OK ? (size_t)len : 0);
}

/* An idle channel; else the least busy of those that are not due for a new port; else the least busy. */
static struct dns_channel *
channel_choose(struct dns_upstream *upstream)
{
	struct dns_channel *fresh = NULL, *any = &upstream->udp[0];

	for (size_t i = 0; i < DNS_UPSTREAM_CHANNELS; i++) {
		struct dns_channel *channel = &upstream->udp[i];

		if (channel->job_count == 0)
			return channel;
		if (channel->job_count < any->job_count)
			any = channel;
		if (channel->served < DNS_UPSTREAM_RENEW && (fresh == NULL || channel->job_count < fresh->job_count))
			fresh = channel;
	}
	return fresh != NULL ? fresh : any;
}

/* c-ares tells answers apart by id: it must be the only one of its channel. */
static bool
channel_has_id(const struct dns_channel *channel, uint16_t id)
{
	const struct dns_upstream_job *job;

	LIST_FOREACH(job, &channel->jobs, next)
	if ((uint16_t)(job->query[0] << 8 | job->query[1]) == id)
		return true;
	return false;
}

/* A job on the channel's list with its query written. NULL without memory.
 * syscalls: getrandom */
static struct dns_upstream_job *
job_new(struct dns_channel *channel, struct dns_upstream_request *request, const struct name *name, uint16_t type,
    bool mix_case)
{
	struct dns_upstream_job *job = calloc(1, sizeof(*job));
	uint64_t bits[2];

	if (job == NULL)
		return NULL;
	do {
		if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits)) {
			free(job);
			return NULL;
		}
	} while (channel_has_id(channel, (uint16_t)bits[0]));
	job->channel = channel;
	job->request = request;
	job->query_len = dns_message_write_query(name, type, (uint16_t)bits[0], mix_case ? bits[1] : 0, job->query);
	return job;
}

int
dns_upstream_send(struct dns_upstream *upstream, struct dns_upstream_request *request, const struct name *name,
    uint16_t type, bool tcp)
{
	struct dns_channel *channel = tcp ? &upstream->tcp : channel_choose(upstream);
	struct dns_upstream_job *job;

	if (upstream->job_count >= DNS_UPSTREAM_MAX)
		return -ENOBUFS;
	/* Channels with queries keep their order until they are idle; one that cannot be changed is as good as
	 * before. */
	if (channel->job_count == 0 && channel->first != upstream->first)
		(void)channel_set_servers(channel);
	job = job_new(channel, request, name, type, !tcp);
	if (job == NULL)
		return -ENOMEM;
	LIST_INSERT_HEAD(&channel->jobs, job, next);
	channel->job_count++;
	channel->served++;
	upstream->job_count++;
	request->job = job;
	job->sending = true;
	ares_send(channel->ares, job->query, (int)job->query_len, job_callback, job);
	/* A job that is finished already waits for the end of the round: it is still there. */
	job->sending = false;
	channel_set_timer(channel);
	return 0;
}

void
dns_upstream_cancel(struct dns_upstream_request *request)
{
	if (request->job == NULL)
		return;
	request->job->request = NULL;
	request->job = NULL;
}
