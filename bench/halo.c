// Ghost cells of an n^3 field of doubles on 8 MPI ranks (2x2x2, periodic, all 26 neighbours): Ferrier against bare programs that
// move the same bytes between buffers without gaps, in turn. bench/halo builds and runs it on emulated hosts.
//
//   halo N WIDTH ROUNDS MODE...
//
// Modes: ferrier (exchange), ferrier-halves (start and finish), mpi (one message to each of the 7 peers), mpi-cut (the same in pieces
// of 32 KiB), tcp (plain sockets and poll, all peers at once), tcp-turn (the same, one peer after the other).
// Prints a line for each mode: the median and the best time of the slowest rank in ms, and how busy the cores of the machine were
// (MPI spins while it waits; sockets sleep).
#include <mpi.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ferrier.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 8, PEERS = 7, PIECE = 32 << 10, MOST = 4096 };

static int rank;
// Peer number p is the rank whose place in the grid differs on the axes of the bits of p + 1: x faces, y, xy edges, ...
static size_t bytes[PEERS];
static char *out[PEERS], *in[PEERS];
static int sockets[PEERS];

static void fail(const char *what) {
  fprintf(stderr, "halo: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static void check(ferrier_status status) {
  if (status != FERRIER_STATUS_OK) fail(ferrier_last_error());
}

static int peer(int p) { return rank ^ (p + 1); }

static void run_mpi(size_t piece) {
  static MPI_Request requests[MOST];
  int count = 0;
  for (int sending = 0; sending < 2; sending++)
    for (int p = 0; p < PEERS; p++)
      for (size_t at = 0; at < bytes[p]; at += piece) {
        size_t left = bytes[p] - at;
        int len = (int)(left < piece ? left : piece);
        if (count == MOST) fail("too many messages");
        if (sending)
          MPI_Isend(out[p] + at, len, MPI_BYTE, peer(p), 1, MPI_COMM_WORLD, &requests[count++]);
        else
          MPI_Irecv(in[p] + at, len, MPI_BYTE, peer(p), 1, MPI_COMM_WORLD, &requests[count++]);
      }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

// `open` peers are sent to at once.
static void run_tcp(int open) {
  size_t sent[PEERS] = {0}, got[PEERS] = {0};
  for (;;) {
    struct pollfd polls[PEERS];
    int left = 0, sending = 0;
    for (int p = 0; p < PEERS; p++) {
      polls[p] = (struct pollfd){.fd = sockets[p], .events = got[p] < bytes[p] ? POLLIN : 0};
      if (sent[p] < bytes[p] && sending < open) {
        polls[p].events |= POLLOUT;
        sending++;
      }
      if (polls[p].events == 0) polls[p].fd = -1;
      left += polls[p].events != 0;
    }
    if (left == 0) return;
    if (poll(polls, PEERS, -1) < 0 && errno != EINTR) fail("poll");
    for (int p = 0; p < PEERS; p++) {
      if (polls[p].revents & POLLOUT) {
        ssize_t n = send(sockets[p], out[p] + sent[p], bytes[p] - sent[p], MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) fail("send");
        if (n > 0) sent[p] += (size_t)n;
      }
      if (polls[p].revents & (POLLIN | POLLERR | POLLHUP)) {
        ssize_t n = recv(sockets[p], in[p] + got[p], bytes[p] - got[p], 0);
        if (n == 0 || (n < 0 && errno != EAGAIN)) fail("recv");
        if (n > 0) got[p] += (size_t)n;
      }
    }
  }
}

static uint32_t own_address(void) {
  struct ifaddrs *all;
  uint32_t found = htonl(INADDR_LOOPBACK);
  if (getifaddrs(&all) != 0) fail("getifaddrs");
  for (struct ifaddrs *one = all; one; one = one->ifa_next)
    if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET && strcmp(one->ifa_name, "eth0") == 0)
      found = ((struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr;
  freeifaddrs(all);
  return found;
}

// A socket to each peer: the lower rank connects.
static void connect_all(void) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = INADDR_ANY}, all[RANKS];
  socklen_t len = sizeof own;
  int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  if (bind(listener, (void *)&own, sizeof own) != 0 || listen(listener, RANKS) != 0) fail("listen");
  getsockname(listener, (void *)&own, &len);
  own.sin_addr.s_addr = own_address();
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
  for (int p = 0; p < PEERS; p++) {
    if (peer(p) < rank) continue;
    sockets[p] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(sockets[p], (void *)&all[peer(p)], sizeof own) != 0) fail("connect");
    if (write(sockets[p], &rank, sizeof rank) != sizeof rank) fail("write");
  }
  for (int p = 0; p < PEERS; p++) {
    if (peer(p) > rank) continue;
    int from, fd = accept(listener, NULL, NULL);
    if (fd < 0 || read(fd, &from, sizeof from) != sizeof from) fail("accept");
    sockets[(from ^ rank) - 1] = fd;
  }
  for (int p = 0; p < PEERS; p++) {
    setsockopt(sockets[p], IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(sockets[p], F_SETFL, O_NONBLOCK);
  }
  close(listener);
}

// Clock ticks of all cores since the machine started: busy, all.
static void ticks(double now[2]) {
  double t[8] = {0};
  FILE *stat = fopen("/proc/stat", "r");
  if (stat && fscanf(stat, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7) < 8) fail("/proc/stat");
  if (stat) fclose(stat);
  now[1] = 0;
  for (int i = 0; i < 8; i++) now[1] += t[i];
  now[0] = now[1] - t[3] - t[4];
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int size, rounds;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 5 || size != RANKS) fail("8 ranks; halo N WIDTH ROUNDS MODE...");
  uint64_t n = strtoull(argv[1], NULL, 10), width = strtoull(argv[2], NULL, 10);
  rounds = atoi(argv[3]);
  int modes = argc - 4;
  size_t payload = 0;
  for (int p = 0; p < PEERS; p++) {
    bytes[p] = sizeof(double);
    for (int axis = 0; axis < 3; axis++) bytes[p] *= (p + 1) >> axis & 1 ? 2 * width : n / 2;
    out[p] = malloc(bytes[p]);
    in[p] = malloc(bytes[p]);
    memset(out[p], rank, bytes[p]);
    payload += bytes[p];
  }
  connect_all();

  ferrier_comm *comm;
  ferrier_problem *problem;
  ferrier_halo *halo;
  ferrier_ghosts ghosts = FERRIER_GHOSTS_DEFAULT;
  for (int axis = 0; axis < 3; axis++) ghosts.low[axis] = ghosts.high[axis] = width, ghosts.periodic[axis] = 1;
  uint64_t shape[3] = {n, n, n}, field_bytes;
  check(ferrier_comm_from_mpi(MPI_COMM_WORLD, &comm));
  check(ferrier_comm_set_threads(comm, 1));
  check(ferrier_problem_c2c(shape, &problem));
  check(ferrier_problem_bricks(problem, FERRIER_SIDE_INPUT));
  check(ferrier_halo_create(comm, problem, FERRIER_SIDE_INPUT, sizeof(double), &ghosts, &halo));
  check(ferrier_halo_bytes(halo, &field_bytes));
  void *field = malloc(field_bytes);
  memset(field, 0, field_bytes);

  double *times = malloc(sizeof(double) * (size_t)(rounds * modes)), (*busy)[2] = calloc((size_t)modes, sizeof *busy);
  for (int round = -1; round < rounds; round++)
    for (int mode = 0; mode < modes; mode++) {
      const char *name = argv[4 + mode];
      double before[2], after[2], start, seconds;
      MPI_Barrier(MPI_COMM_WORLD);
      ticks(before);
      start = MPI_Wtime();
      if (strcmp(name, "ferrier") == 0) {
        check(ferrier_halo_exchange(halo, &field, 1, field_bytes));
      } else if (strcmp(name, "ferrier-halves") == 0) {
        check(ferrier_halo_start(halo, &field, 1, field_bytes));
        check(ferrier_halo_finish(halo));
      } else if (strcmp(name, "mpi") == 0) {
        run_mpi((size_t)1 << 30);
      } else if (strcmp(name, "mpi-cut") == 0) {
        run_mpi(PIECE);
      } else if (strcmp(name, "tcp") == 0) {
        run_tcp(PEERS);
      } else if (strcmp(name, "tcp-turn") == 0) {
        run_tcp(1);
      } else {
        fail("unknown mode");
      }
      seconds = MPI_Wtime() - start;
      ticks(after);
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      if (round < 0) continue;
      times[mode * rounds + round] = seconds;
      for (int i = 0; i < 2; i++) busy[mode][i] += after[i] - before[i];
    }
  if (rank == 0) {
    printf("payload %zu\n", payload);
    for (int mode = 0; mode < modes; mode++) {
      double *t = times + mode * rounds;
      qsort(t, (size_t)rounds, sizeof *t, ascending);
      printf("%s %.4f %.4f %.2f\n", argv[4 + mode], 1e3 * (t[(rounds - 1) / 2] + t[rounds / 2]) / 2, 1e3 * t[0], busy[mode][0] / busy[mode][1]);
    }
  }
  check(ferrier_halo_free(halo));
  check(ferrier_problem_free(problem));
  check(ferrier_comm_free(comm));
  MPI_Finalize();
  return 0;
}
