/* What a message between two processes takes: alpha (to begin one) and beta (a byte), fitted to
 * round trips of 8 bytes and of 1 MiB, and what a sum of as many bytes over all takes. By hand:
 *
 *   mpicc -O2 -o messages tests/bench/messages.c && mpirun -n 2 ./messages
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGE = 1 << 20, TIMES = 200 };

/* Compares two doubles, for qsort. */
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Half a round trip of so many bytes between ranks 0 and 1, or (is_sum) a sum over all: the median,
 * in seconds. rank: this process's. */
static double seconds(int rank, char *data, int bytes, int is_sum) {
    double took[TIMES];
    for (int i = 0; i < TIMES; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        if (is_sum)
            MPI_Allreduce(MPI_IN_PLACE, data, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else if (rank < 2) {
            if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(data, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        took[i] = (MPI_Wtime() - begin) / (is_sum ? 1 : 2);
    }
    qsort(took, TIMES, sizeof *took, by_size);
    return took[TIMES / 2];
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *data = calloc(1, LARGE);
    if (!data || ranks < 2) MPI_Abort(MPI_COMM_WORLD, 2);
    const double small = seconds(rank, data, 8, 0), large = seconds(rank, data, LARGE, 0);
    const double small_sum = seconds(rank, data, 8, 1), large_sum = seconds(rank, data, LARGE, 1);
    if (rank == 0)
        printf("alpha %.1f us, beta %.3f ns a byte (%.2f GB/s); a sum over %d: %.1f us of 8 bytes, "
               "%.0f us of 1 MiB\n",
               1e6 * small, 1e9 * (large - small) / LARGE, LARGE / (large - small) * 1e-9, ranks,
               1e6 * small_sum, 1e6 * large_sum);
    free(data);
    MPI_Finalize();
    return 0;
}
