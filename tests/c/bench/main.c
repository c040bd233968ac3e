// Measures librdmacm and libibverbs. Prints what a workload has measured of itself, in the
// form of the Rust program.
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static uint64_t calls;
static int64_t live_bytes;

// Whether allocations are counted: not while instructions are.
static bool is_counting;

static void *counted(void *pointer)
{
	if (is_counting) {
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&live_bytes, malloc_usable_size(pointer), __ATOMIC_RELAXED);
	}
	return pointer;
}

static void uncount(void *pointer)
{
	if (is_counting)
		__atomic_fetch_sub(&live_bytes, malloc_usable_size(pointer), __ATOMIC_RELAXED);
}

// The allocator of the libraries too, counted.
void *malloc(size_t size)
{
	return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
	uncount(old);
	return counted(__libc_realloc(old, size));
}

void free(void *pointer)
{
	uncount(pointer);
	__libc_free(pointer);
}

static struct {
	uint64_t operations;
	uint64_t nanoseconds;
	uint64_t allocations;
	int64_t live_bytes;
	int64_t resident_bytes;
} measured;

static struct timespec start;
static uint64_t calls_before;
static int64_t bytes_before;
static int64_t resident_before;

// How much of the process is in memory.
static int64_t resident_bytes(void)
{
	char line[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY);
	long pages = 0;

	if (fd < 0)
		return 0;
	if (read(fd, line, sizeof line - 1) > 0)
		sscanf(line, "%*d %ld", &pages);
	close(fd);
	return pages * sysconf(_SC_PAGESIZE);
}

// As in tests/bench/src/meter.rs: strace sees where a section begins and ends.
void section_begin(void)
{
	resident_before = resident_bytes();
	getppid();
	calls_before = calls;
	bytes_before = live_bytes;
	clock_gettime(CLOCK_MONOTONIC, &start);
}

void section_end(uint64_t operations)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	getppid();
	measured.nanoseconds += (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
	measured.allocations += calls - calls_before;
	measured.live_bytes += live_bytes - bytes_before;
	measured.resident_bytes += resident_bytes() - resident_before;
	measured.operations += operations;
}

void check(bool failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

struct rdma_addrinfo *numeric(struct target target, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | flags,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
	};
	struct rdma_addrinfo *found;

	check(rdma_getaddrinfo(target.address, target.port, &hints, &found), "rdma_getaddrinfo");
	return found;
}

// callgrind writes down what it has counted when this is called.
static MEASURED void workload_end(void)
{
	__asm__ volatile("" ::: "memory");
}

static bool run(const struct workload *workload, const char *name, struct target target,
		uint32_t count)
{
	for (; workload->name; workload++) {
		if (strcmp(workload->name, name))
			continue;
		memset(&measured, 0, sizeof measured);
		workload->run(target, count);
		printf("{\"operations\":%lu,\"nanoseconds\":%lu,\"allocations\":%lu,\"live_bytes\":%ld,\"resident_bytes\":%ld}\n",
		       measured.operations, measured.nanoseconds, measured.allocations,
		       measured.live_bytes, measured.resident_bytes);
		fflush(stdout);
		workload_end();
		return true;
	}
	return false;
}

// Four words: the workload, an address, the peer's port, and the number of operations.
static void work(char **words)
{
	struct target target = { words[1], words[2] };
	uint32_t count = atoi(words[3]);

	if (run(id_workloads, words[0], target, count) ||
	    run(data_path_workloads, words[0], target, count) ||
	    run(message_workloads, words[0], target, count) ||
	    run(connection_workloads, words[0], target, count) ||
	    run(throughput_workloads, words[0], target, count) ||
	    run(stream_workloads, words[0], target, count))
		return;
	fprintf(stderr, "no workload %s\n", words[0]);
	exit(2);
}

static bool is_in(const struct workload *workload, const char *name)
{
	while (workload->name && strcmp(workload->name, name))
		workload++;
	return workload->name;
}

// The peer of a workload.
static void serve(const char *name, const char *address)
{
	if (is_in(connection_workloads, name))
		serve_connections(address, strstr(name, "-messages"));
	else if (is_in(throughput_workloads, name))
		serve_memory(address);
	else if (is_in(stream_workloads, name))
		serve_streams(address, name);
	else
		serve_messages(address, !strncmp(name, "round-trip", 10));
}

// Allows as many open files as the system does: many connections need them.
static void raise_limit(void)
{
	struct rlimit limit;

	check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

int main(int argc, char **argv)
{
	is_counting = !getenv("RDMACM_UNCOUNTED");
	raise_limit();
	if (argc == 4 && !strcmp(argv[1], "peer")) {
		serve(argv[2], argv[3]);
		return 0;
	}
	if (argc > 2 && argc % 4 == 2 && !strcmp(argv[1], "work")) {
		for (int i = 2; i < argc; i += 4)
			work(argv + i);
		return 0;
	}
	fprintf(stderr, "usage: %s work NAME ADDRESS PORT COUNT ... | peer NAME ADDRESS\n", argv[0]);
	return 2;
}
