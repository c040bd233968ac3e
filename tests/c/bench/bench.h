// Workloads as those of tests/bench, with librdmacm and libibverbs.
#ifndef BENCH_H
#define BENCH_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

#define SIZE 64
#define BATCH 32
#define TIMEOUT_MS 10000

// Where a workload runs.
struct target {
	const char *address;
	const char *port;
};

// Ends the program with the error if `failed`.
void check(bool failed, const char *what);

// Counts the operations of the section that follows; callgrind counts the
// instructions of functions whose names contain `measured_section`.
void section_begin(void);
void section_end(uint64_t operations);

#define MEASURED __attribute__((noinline))

typedef void workload_run(struct target target, uint32_t count);

struct workload {
	const char *name;
	workload_run *run;
};

extern const struct workload id_workloads[];
extern const struct workload data_path_workloads[];
extern const struct workload message_workloads[];
extern const struct workload connection_workloads[];
extern const struct workload throughput_workloads[];
extern const struct workload stream_workloads[];

// These serve until the process is killed, and print their ports.
void serve_messages(const char *address, bool echo);
void serve_connections(const char *address, bool messages);
void serve_memory(const char *address);
void serve_streams(const char *address, const char *name);

// The address as a socket address.
struct rdma_addrinfo *numeric(struct target target, int flags);

#endif
