// Measures librdmacm and libibverbs. Prints what a workload has measured of itself, in the
// form of the Rust program.
#include "bench.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void __libc_free(void *pointer);

static uint64_t calls;
static int64_t live_bytes;

// The allocator of the libraries too, counted.
void *malloc(size_t size)
{
	void *pointer = __libc_malloc(size);
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live_bytes, malloc_usable_size(pointer), __ATOMIC_RELAXED);
	return pointer;
}

void *calloc(size_t count, size_t size)
{
	void *pointer = __libc_calloc(count, size);
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live_bytes, malloc_usable_size(pointer), __ATOMIC_RELAXED);
	return pointer;
}

void *realloc(void *old, size_t size)
{
	int64_t before = malloc_usable_size(old);
	void *pointer = __libc_realloc(old, size);
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&live_bytes, malloc_usable_size(pointer) - before, __ATOMIC_RELAXED);
	return pointer;
}

void free(void *pointer)
{
	__atomic_fetch_sub(&live_bytes, malloc_usable_size(pointer), __ATOMIC_RELAXED);
	__libc_free(pointer);
}

static struct {
	uint64_t operations;
	uint64_t nanoseconds;
	uint64_t allocations;
	int64_t live_bytes;
} measured;

static struct timespec start;
static uint64_t calls_before;
static int64_t bytes_before;

void section_begin(void)
{
	calls_before = calls;
	bytes_before = live_bytes;
	clock_gettime(CLOCK_MONOTONIC, &start);
}

void section_end(uint64_t operations)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	measured.nanoseconds += (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
	measured.allocations += calls - calls_before;
	measured.live_bytes += live_bytes - bytes_before;
	measured.operations += operations;
}

void check(bool failed, const char *what)
{
	if (!failed)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

struct rdma_addrinfo *numeric(struct place place, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | flags,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
	};
	struct rdma_addrinfo *found;

	check(rdma_getaddrinfo(place.address, place.port, &hints, &found), "rdma_getaddrinfo");
	return found;
}

static bool run(const struct workload *workload, const char *name, struct place place,
		uint32_t count)
{
	for (; workload->name; workload++) {
		if (strcmp(workload->name, name))
			continue;
		workload->run(place, count);
		printf("{\"operations\":%lu,\"nanoseconds\":%lu,\"allocations\":%lu,\"live_bytes\":%ld}\n",
		       measured.operations, measured.nanoseconds, measured.allocations,
		       measured.live_bytes);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "peer")) {
		serve(argv[3], !strncmp(argv[2], "round-trip", 10));
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "work")) {
		struct place place = { argv[3], argv[4] };
		uint32_t count = atoi(argv[5]);

		if (run(id_workloads, argv[2], place, count) ||
		    run(data_path_workloads, argv[2], place, count) ||
		    run(message_workloads, argv[2], place, count))
			return 0;
		fprintf(stderr, "no workload %s\n", argv[2]);
		return 2;
	}
	fprintf(stderr, "usage: %s work NAME ADDRESS PORT COUNT | peer NAME ADDRESS\n", argv[0]);
	return 2;
}
