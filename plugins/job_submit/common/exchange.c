/*
 * One question to the advisor: connect, who is it, write, read. One deadline for all of it, on the monotonic clock:
 * slurmctld holds its locks meanwhile.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t gw_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Wait for `events`; false once the deadline has passed. A socket in error is ready: the next call says what it is. */
static bool wait_for(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd one = {.fd = fd, .events = events};
		uint64_t now = gw_now_ns();
		uint64_t left = now < deadline_ns ? deadline_ns - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S)};
		int ready;

		if (!left)
			return false;
		ready = ppoll(&one, 1, &wait, NULL);
		if (ready > 0)
			return true;
		if (ready < 0 && errno != EINTR)
			return false;
	}
}

static bool is_again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static int connect_to(const char *path, uint64_t deadline_ns, const char **why)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0;
	socklen_t size = sizeof(error);

	*why = "cannot create a socket";
	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	/* A Unix socket whose queue is full answers EAGAIN: the advisor does not accept, so it is not waited for. */
	*why = errno == EAGAIN ? "its backlog is full" : "no listener";
	if (errno == EINPROGRESS && wait_for(fd, POLLOUT, deadline_ns) &&
	    !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error)
		return fd;
	close(fd);
	return -1;
}

static bool is_advisor(int fd, const gw_settings *settings)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || size != sizeof(peer))
		return false;
	return peer.uid == 0 || (settings->advisor_known && peer.uid == settings->advisor_uid);
}

/* Write it all. A peer that stops reading may have answered already ("pass", at once), so that is no failure here. */
static bool write_all(int fd, const char *frame, size_t length, uint64_t deadline_ns)
{
	size_t sent = 0;

	while (sent < length) {
		ssize_t now = send(fd, frame + sent, length - sent, MSG_NOSIGNAL);

		if (now >= 0)
			sent += (size_t)now;
		else if (!is_again())
			return errno == EPIPE || errno == ECONNRESET;
		else if (errno != EINTR && !wait_for(fd, POLLOUT, deadline_ns))
			return false;
	}
	return true;
}

/* The whole size of the frame that begins here, 0 while the header is not whole, SIZE_MAX for no frame of ours. */
static size_t frame_size(const char *buffer, size_t used)
{
	uint32_t length;
	uint16_t version;

	if (used < GW_HEADER)
		return 0;
	memcpy(&length, buffer, sizeof(length));
	memcpy(&version, buffer + sizeof(length), sizeof(version));
	length = ntohl(length);
	if (ntohs(version) != GW_VERSION || !length || length > GW_MAX_REPLY)
		return SIZE_MAX;
	return GW_HEADER + length;
}

static gw_result read_frame(int fd, char *buffer, size_t size, size_t *used, uint64_t deadline_ns, const char **why)
{
	*used = 0;
	for (;;) {
		size_t whole = frame_size(buffer, *used);
		ssize_t now;

		*why = "the reply has no valid header of this version";
		if (whole == SIZE_MAX || (whole && *used > whole))
			return GW_BAD;
		if (whole && *used == whole)
			return GW_DONE;
		now = recv(fd, buffer + *used, size - *used, 0);
		*why = "the connection ended before the end of the reply";
		if (!now || (now < 0 && !is_again()))
			return GW_MISS;
		*why = "timeout before the end of the reply";
		if (now > 0)
			*used += (size_t)now;
		else if (errno != EINTR && !wait_for(fd, POLLIN, deadline_ns))
			return GW_MISS;
	}
}

gw_result gw_exchange(const gw_settings *settings, const char *frame, size_t length, char body[GW_MAX_REPLY],
		      size_t *body_length, const char **why)
{
	uint64_t deadline_ns = gw_now_ns() + (uint64_t)settings->deadline_us * 1000;
	char buffer[GW_HEADER + GW_MAX_REPLY + 1]; /* one more: what follows a frame shows */
	gw_result result = GW_MISS;
	size_t used;
	int fd = connect_to(settings->socket, deadline_ns, why);

	if (fd < 0)
		return GW_MISS;
	if (!is_advisor(fd, settings)) {
		*why = "the listener runs as neither advisor_user nor root";
		result = GW_BAD;
	} else if (!write_all(fd, frame, length, deadline_ns)) {
		*why = "it does not read the request";
	} else {
		result = read_frame(fd, buffer, sizeof(buffer), &used, deadline_ns, why);
	}
	close(fd);
	if (result == GW_DONE) {
		*body_length = used - GW_HEADER;
		memcpy(body, buffer + GW_HEADER, *body_length);
	}
	return result;
}
