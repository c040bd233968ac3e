// Byte streams of rsockets, and their peers.
#include "bench.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB_64 (64 << 10)
#define MIB (1 << 20)
#define CHUNK KIB_64
#define LATE_US 2000
#define WARM_UP 256

// The sizes of a small stream.
#define SMALL_BUFFER 4096
#define SMALL_REQUESTS 16

static struct sockaddr_in socket_address(const char *address, int port)
{
	struct sockaddr_in found = { .sin_family = AF_INET, .sin_port = htons(port) };

	check(inet_pton(AF_INET, address, &found.sin_addr) != 1, "inet_pton");
	return found;
}

static void set(int fd, int level, int option, int value)
{
	check(rsetsockopt(fd, level, option, &value, sizeof value), "rsetsockopt");
}

static void make_small(int fd)
{
	// rsockets double these two.
	set(fd, SOL_SOCKET, SO_RCVBUF, SMALL_BUFFER / 2);
	set(fd, SOL_SOCKET, SO_SNDBUF, SMALL_BUFFER / 2);
	set(fd, SOL_RDMA, RDMA_RQSIZE, SMALL_REQUESTS);
	set(fd, SOL_RDMA, RDMA_SQSIZE, SMALL_REQUESTS);
}

static int connect_stream(struct target target, bool small)
{
	struct sockaddr_in address = socket_address(target.address, atoi(target.port));
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	check(fd < 0, "rsocket");
	if (small)
		make_small(fd);
	check(rconnect(fd, (struct sockaddr *)&address, sizeof address), "rconnect");
	return fd;
}

static void close_stream(int fd)
{
	rshutdown(fd, SHUT_RDWR);
	rclose(fd);
}

static bool write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = rsend(fd, bytes, size, 0);

		if (written <= 0)
			return false;
		bytes += written;
		size -= written;
	}
	return true;
}

static bool read_all(int fd, char *bytes, size_t size)
{
	while (size) {
		ssize_t length = rrecv(fd, bytes, size, 0);

		if (length <= 0)
			return false;
		bytes += length;
		size -= length;
	}
	return true;
}

static void trip(int fd)
{
	char bytes[SIZE] = { 7 }, reply[SIZE];

	check(!write_all(fd, bytes, SIZE), "rsend");
	check(!read_all(fd, reply, SIZE), "rrecv");
	check(memcmp(bytes, reply, SIZE), "the reply");
}

static MEASURED void measured_section_stream_trips(int fd, uint32_t count)
{
	while (count--)
		trip(fd);
}

static void run_round_trip(struct target target, uint32_t count)
{
	int fd = connect_stream(target, false);

	for (int i = 0; i < WARM_UP; i++)
		trip(fd);
	section_begin();
	measured_section_stream_trips(fd, count);
	section_end(count);
	close_stream(fd);
}

// Tells the peer how many bytes follow.
static void announce(int fd, size_t size, uint32_t count)
{
	uint64_t bytes = (uint64_t)size * count;

	check(!write_all(fd, (char *)&bytes, sizeof bytes), "rsend");
}

// Waits until the peer has read what was announced.
static void confirm(int fd)
{
	char reply;

	check(!read_all(fd, &reply, 1), "rrecv");
}

static MEASURED void measured_section_messages(int fd, const char *bytes, size_t size,
					       uint32_t count)
{
	while (count--)
		check(!write_all(fd, bytes, size), "rsend");
}

static MEASURED void measured_section_writes(int fd, const char *bytes, size_t size,
					     uint32_t count)
{
	while (count--)
		check(!write_all(fd, bytes, size), "rsend");
	confirm(fd);
}

// The peer reads them later, after as many others.
static void run_64(struct target target, uint32_t count)
{
	int fd = connect_stream(target, false);
	char bytes[SIZE] = { 7 };

	announce(fd, SIZE, count);
	for (uint32_t i = 0; i < count; i++)
		check(!write_all(fd, bytes, SIZE), "rsend");
	confirm(fd);
	announce(fd, SIZE, count);
	section_begin();
	measured_section_messages(fd, bytes, SIZE, count);
	section_end(count);
	confirm(fd);
	close_stream(fd);
}

static void run_writes(struct target target, uint32_t count, size_t size)
{
	int fd = connect_stream(target, false);
	char *bytes = malloc(size);

	memset(bytes, 7, size);
	announce(fd, size, count);
	section_begin();
	measured_section_writes(fd, bytes, size, count);
	section_end(count);
	free(bytes);
	close_stream(fd);
}

static void run_64k(struct target target, uint32_t count)
{
	run_writes(target, count, KIB_64);
}

static void run_1m(struct target target, uint32_t count)
{
	run_writes(target, count, MIB);
}

static MEASURED void measured_section_connect_streams(struct target target, int *fds,
						      uint32_t count, bool small)
{
	for (uint32_t i = 0; i < count; i++)
		fds[i] = connect_stream(target, small);
}

// Beside one that keeps the device open. One of them still answers then.
static void idle(struct target target, uint32_t count, bool small)
{
	int first = connect_stream(target, small);
	int *fds = calloc(count, sizeof *fds);

	section_begin();
	measured_section_connect_streams(target, fds, count, small);
	section_end(count);
	trip(fds[count / 2]);
	for (uint32_t i = 0; i < count; i++)
		close_stream(fds[i]);
	close_stream(first);
	free(fds);
}

static void run_idle(struct target target, uint32_t count)
{
	idle(target, count, false);
}

static void run_idle_small(struct target target, uint32_t count)
{
	idle(target, count, true);
}

static bool is_late;

static void *return_bytes(void *argument)
{
	int fd = (intptr_t)argument;
	char *bytes = malloc(CHUNK);
	ssize_t length;

	while ((length = rrecv(fd, bytes, CHUNK, 0)) > 0) {
		if (is_late)
			usleep(LATE_US);
		if (!write_all(fd, bytes, length))
			break;
	}
	free(bytes);
	close_stream(fd);
	return NULL;
}

// Reads `left` bytes.
static bool drain(int fd, char *bytes, uint64_t left)
{
	while (left) {
		ssize_t length = rrecv(fd, bytes, left < CHUNK ? left : CHUNK, 0);

		if (length <= 0)
			return false;
		left -= length;
	}
	return true;
}

static void *read_announced(void *argument)
{
	int fd = (intptr_t)argument;
	char *bytes = malloc(CHUNK), reply = 1;
	uint64_t announced;

	while (read_all(fd, (char *)&announced, sizeof announced) &&
	       drain(fd, bytes, announced) && write_all(fd, &reply, 1))
		;
	free(bytes);
	close_stream(fd);
	return NULL;
}

static int listen_at(const char *address)
{
	struct sockaddr_in at = socket_address(address, 0);
	socklen_t length = sizeof at;
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	check(fd < 0, "rsocket");
	check(rbind(fd, (struct sockaddr *)&at, sizeof at), "rbind");
	check(rlisten(fd, 128), "rlisten");
	check(rgetsockname(fd, (struct sockaddr *)&at, &length), "rgetsockname");
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

void serve_streams(const char *address, const char *name)
{
	void *(*serve_one)(void *) = strncmp(name, "stream-", 7) ? return_bytes : read_announced;
	int listener = listen_at(address);
	pthread_t thread;

	is_late = strstr(name, "-late");
	for (;;) {
		int fd = raccept(listener, NULL, NULL);

		// A client that has gone already concerns no other.
		if (fd < 0)
			continue;
		check(pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd),
		      "pthread_create");
		pthread_detach(thread);
	}
}

const struct workload stream_workloads[] = {
	{ "round-trip-stream", run_round_trip },
	{ "round-trip-stream-late", run_round_trip },
	{ "stream-64", run_64 },
	{ "stream-64k", run_64k },
	{ "stream-1m", run_1m },
	{ "idle-streams", run_idle },
	{ "idle-streams-small", run_idle_small },
	{ "idle-streams-1000", run_idle_small },
	{ NULL, NULL },
};
